package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * What makes {@code ./vgpu} start soon: the archive of its classes, and the look at the sources
 * that reads none of them. It runs in a checkout with one small module beside the command's jars.
 */
class QuickStartIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", "..")).toAbsolutePath();
  private static final long TIMEOUT_SECONDS = 120;
  private static final String FROM_ARCHIVE = "VgpuCommand source: shared objects file";
  private static final String FROM_JAR = "VgpuCommand source: file:";

  /** Stands for a build that has just ended: the stamp says what the sources are. */
  private static final String BUILT =
      """
      ROOT=$PWD STAMP=target/vgpu-build.stamp
      . build/maven.sh
      mkdir -p target && list_inputs >"$STAMP"
      """;

  @TempDir Path directory;
  private Path root;
  private Path jar;

  private record Ended(int status, String out, String err) {}

  @BeforeEach
  void makeCheckout() throws Exception {
    root = Files.createDirectory(directory.resolve("checkout"));
    copyScripts();
    Path module = Files.createDirectories(root.resolve("vgpu-cli"));
    Files.createDirectories(module.resolve("src/main/java"));
    Files.writeString(module.resolve("src/main/java/Source.java"), "class Source {}\n");
    Files.writeString(module.resolve("pom.xml"), "<!-- maven-dependency-plugin -->\n");
    Files.createDirectories(module.resolve("target"));
    List<String> jars = new ArrayList<>();
    for (String each :
        Files.readString(HOME.resolve("vgpu-cli/target/classpath.txt"), UTF_8)
            .strip()
            .split(":", -1)) {
      Path copy = root.resolve("vgpu-cli/target").resolve(Path.of(each).getFileName());
      Files.copy(Path.of(each), copy);
      jars.add(copy.toString());
    }
    jar = Path.of(jars.get(0));
    Files.writeString(module.resolve("target/classpath.txt"), String.join(":", jars) + "\n");
    assertThat(run(Map.of(), "bash", "-c", BUILT).status).isZero();
  }

  private void copyScripts() throws IOException {
    Files.copy(HOME.resolve("vgpu"), root.resolve("vgpu"));
    Path build = Files.createDirectory(root.resolve("build"));
    try (Stream<Path> files = Files.list(HOME.resolve("build"))) {
      for (Path file : files.filter(each -> each.toString().endsWith(".sh")).toList()) {
        Files.copy(file, build.resolve(file.getFileName()));
      }
    }
  }

  private Process start(Map<String, String> variables, Path out, Path err, String... command)
      throws IOException {
    ProcessBuilder builder = new ProcessBuilder(command).directory(root.toFile());
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().remove("LD_PRELOAD");
    builder.environment().put("JAVA_HOME", System.getProperty("java.home"));
    builder.environment().put("VGPU_RUN_DIR", directory.resolve("run").toString());
    builder.environment().putAll(variables);
    return builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
  }

  private Ended run(Map<String, String> variables, String... command) throws Exception {
    Path out = Files.createTempFile(directory, "out", "");
    Path err = Files.createTempFile(directory, "err", "");
    Process process = start(variables, out, err, command);
    try {
      assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
      return new Ended(process.exitValue(), Files.readString(out), Files.readString(err));
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }

  /** {@return what the JVM says of the classes that it loads} */
  private String version(Map<String, String> variables) throws Exception {
    Ended ended = run(variables, "bash", "vgpu", "--version");
    assertThat(ended.status).as(ended.err).isZero();
    assertThat(ended.err).isEmpty();
    assertThat(ended.out).contains("vgpu ");
    return ended.out;
  }

  private String versionWithClasses() throws Exception {
    return version(Map.of("VGPU_JAVA_OPTS", "-Xlog:class+load"));
  }

  private List<Path> archives() throws IOException {
    Path place = root.resolve("target/archive");
    if (!Files.isDirectory(place)) {
      return List.of();
    }
    try (Stream<Path> files = Files.list(place)) {
      return files.sorted().toList();
    }
  }

  private Ended isFresh(String path) throws Exception {
    String script =
        "ROOT=$PWD STAMP=target/vgpu-build.stamp SEEN=target/vgpu-build.seen; . build/maven.sh; is_fresh";
    return run(Map.of("PATH", path), "bash", "-c", script);
  }

  private static String path() {
    return System.getenv("PATH");
  }

  @Test
  void theClassesComeFromAnArchiveThatFollowsTheJars() throws Exception {
    assertThat(version(Map.of()).lines()).hasSize(1);
    assertThat(archives()).hasSize(1);
    Path archive = archives().get(0);
    assertThat(versionWithClasses()).contains(FROM_ARCHIVE);
    Object first = Files.readAttributes(archive, "unix:ino").get("ino");
    assertThat(versionWithClasses()).contains(FROM_ARCHIVE);
    assertThat(Files.readAttributes(archive, "unix:ino").get("ino")).isEqualTo(first);

    Files.setLastModifiedTime(jar, FileTime.from(Instant.now()));
    assertThat(versionWithClasses()).contains(FROM_ARCHIVE);
    assertThat(archives()).hasSize(1);
    assertThat(Files.readAttributes(archive, "unix:ino").get("ino")).isNotEqualTo(first);
    assertThat(root.resolve("target").toFile().list())
        .noneMatch(name -> name.startsWith("archive."));
  }

  @Test
  void anotherJdkHasAnArchiveOfItsOwn() throws Exception {
    version(Map.of());
    Path other = directory.resolve("other-jdk");
    Files.createSymbolicLink(other, Path.of(System.getProperty("java.home")));
    version(Map.of("JAVA_HOME", other.toString()));
    assertThat(archives()).hasSize(2);
    assertThat(versionWithClasses()).contains(FROM_ARCHIVE);
  }

  /** The JVM looks at the jars' sizes and times, and at what made the archive. */
  @Test
  void anArchiveThatDoesNotFitIsPassedOver() throws Exception {
    version(Map.of());
    Path archive = archives().get(0);
    Files.setLastModifiedTime(jar, FileTime.from(Instant.now().minusSeconds(86_400)));
    assertThat(versionWithClasses()).contains(FROM_JAR).doesNotContain(FROM_ARCHIVE);
    Files.delete(archive);
    Files.writeString(archive, "not an archive, and longer than a header".repeat(500), UTF_8);
    assertThat(version(Map.of()).lines()).hasSize(1);
  }

  @Test
  void withoutAPlaceForTheArchiveTheCommandRuns() throws Exception {
    Files.writeString(root.resolve("target/archive"), "in the way");
    assertThat(versionWithClasses()).contains(FROM_JAR);
  }

  /** So no JVM that the build's tests start waits for an archive. */
  @Test
  void aTestOfTheBuildMakesNone() throws Exception {
    version(Map.of("VGPU_BUILDING", "1"));
    assertThat(archives()).isEmpty();
  }

  @Test
  void twoAtOnceBothRun() throws Exception {
    List<Process> both = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      both.add(
          start(
              Map.of(),
              directory.resolve("out" + i),
              directory.resolve("err" + i),
              "bash",
              "vgpu",
              "--version"));
    }
    for (int i = 0; i < 2; i++) {
      assertThat(both.get(i).waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
      assertThat(both.get(i).exitValue()).isZero();
      assertThat(directory.resolve("out" + i)).content().startsWith("vgpu ");
      assertThat(directory.resolve("err" + i)).isEmptyFile();
    }
    assertThat(versionWithClasses()).contains(FROM_ARCHIVE);
  }

  @Test
  void sourcesAreReadOnlyIfAFileLooksChanged() throws Exception {
    Path source = root.resolve("vgpu-cli/src/main/java/Source.java");
    Path noSums = Files.createDirectory(directory.resolve("no-sums"));
    Path cksum = noSums.resolve("cksum");
    Files.writeString(cksum, "#!/bin/sh\nexit 1\n");
    assertThat(cksum.toFile().setExecutable(true)).isTrue();
    String withoutSums = noSums + ":" + path();

    assertThat(isFresh(withoutSums).status).isNotZero();
    assertThat(isFresh(path()).status).isZero();
    assertThat(isFresh(withoutSums).status).isZero();

    // Another time, the same text: read once.
    Files.setLastModifiedTime(source, FileTime.from(Instant.now().plusSeconds(5)));
    assertThat(isFresh(withoutSums).status).isNotZero();
    assertThat(isFresh(path()).status).isZero();
    assertThat(isFresh(withoutSums).status).isZero();

    // The same size and the same time, another text.
    FileTime time = Files.getLastModifiedTime(source);
    Files.writeString(source, "class Origin {}\n");
    Files.setLastModifiedTime(source, time);
    assertThat(isFresh(path()).status).isNotZero();
    Files.writeString(source, "class Source {}\n");
    assertThat(isFresh(path()).status).isZero();
  }

  @Test
  void whatIsMissingOrNewIsNoticed() throws Exception {
    assertThat(isFresh(path()).status).isZero();
    Path added = root.resolve("vgpu-cli/src/main/java/Added.java");
    Files.writeString(added, "class Added {}\n");
    assertThat(isFresh(path()).status).isNotZero();
    Files.delete(added);
    assertThat(isFresh(path()).status).isZero();
    Path classPath = root.resolve("vgpu-cli/target/classpath.txt");
    Path away = directory.resolve("away");
    for (Path each : List.of(jar, classPath)) {
      Files.move(each, away);
      assertThat(isFresh(path()).status).as("without %s", each).isNotZero();
      Files.move(away, each);
      assertThat(isFresh(path()).status).isZero();
    }
  }
}
