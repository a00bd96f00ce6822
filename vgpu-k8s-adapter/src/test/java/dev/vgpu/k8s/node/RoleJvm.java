package dev.vgpu.k8s.node;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.spi.ToolProvider;

/**
 * Command lines of JVMs that run one class again and again. The first writes which classes it
 * loads. The later ones map these from an archive (the JVM's class data sharing), and so take a
 * third less processor time to start. The JVM does without an archive that does not fit.
 */
public final class RoleJvm {
  private static final String JAVA =
      Path.of(System.getProperty("java.home"), "bin", "java").toString();
  private static final List<String> QUICK_START =
      List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xlog:disable");

  private final Class<?> main;
  private final Path directory;
  private final String classPath;
  private boolean isArchived;

  public RoleJvm(Class<?> main) {
    this.main = main;
    try {
      directory = Files.createTempDirectory("vgpu-role");
      directory.toFile().deleteOnExit(); // before its files, so that it is deleted after them
      classPath = jars();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** The class path of the tests. An archive holds the classes of jars only. */
  private String jars() {
    List<String> entries = new ArrayList<>();
    for (String entry : System.getProperty("java.class.path").split(File.pathSeparator, -1)) {
      if (Files.isDirectory(Path.of(entry)) && !entry.isEmpty()) {
        entries.add(jarOf(entry, entries.size()));
      } else if (Files.isRegularFile(Path.of(entry))) {
        entries.add(entry);
      }
    }
    return String.join(File.pathSeparator, entries);
  }

  private String jarOf(String classes, int number) {
    String jar = file(number + ".jar").toString();
    int rc =
        ToolProvider.findFirst("jar")
            .orElseThrow()
            .run(System.out, System.err, "-c0f", jar, "-C", classes, ".");
    if (rc != 0) {
      throw new AssertionError("jar: " + rc);
    }
    return jar;
  }

  private Path file(String name) {
    Path file = directory.resolve(name);
    file.toFile().deleteOnExit();
    return file;
  }

  /** {@return the command line of the next} */
  public synchronized List<String> command(String... arguments) {
    Path list = file("classes");
    Path archive = file("archive");
    if (!isArchived && Files.exists(list)) {
      dump(list, archive);
      isArchived = true;
    }
    List<String> command = new ArrayList<>(List.of(JAVA));
    command.addAll(QUICK_START);
    command.add(
        isArchived ? "-XX:SharedArchiveFile=" + archive : "-XX:DumpLoadedClassList=" + list);
    command.addAll(List.of("-cp", classPath, main.getName()));
    command.addAll(List.of(arguments));
    return command;
  }

  private void dump(Path list, Path archive) {
    List<String> command = new ArrayList<>(List.of(JAVA));
    command.addAll(QUICK_START);
    command.addAll(List.of("-Xshare:dump", "-XX:SharedClassListFile=" + list));
    command.addAll(List.of("-XX:SharedArchiveFile=" + archive, "-cp", classPath));
    try {
      String lines = Files.readString(list);
      // The last may be a part of a line: the process was killed.
      Files.writeString(list, lines.substring(0, lines.lastIndexOf('\n') + 1));
      Process process =
          new ProcessBuilder(command)
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      int ignored = process.waitFor();
    } catch (IOException | InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
