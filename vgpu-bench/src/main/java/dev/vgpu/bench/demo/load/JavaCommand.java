package dev.vgpu.bench.demo.load;

import dev.vgpu.bench.demo.child.ChildProcess;
import java.io.File;
import java.net.URISyntaxException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Command lines that start another main class on this JVM's runtime. */
public final class JavaCommand {
  private JavaCommand() {}

  /** {@return the load generator's command line: a small JVM, because it shares the processors} */
  static List<String> loadGenerator(String server) {
    List<String> command = java();
    command.addAll(
        List.of("-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"));
    // Shorter than a server's timeout, so that no request goes out on a connection about to close.
    command.add("-Djdk.httpclient.keepalive.timeout=5");
    command.addAll(List.of("-cp", System.getProperty("java.class.path", "")));
    command.addAll(List.of(LoadGenerator.class.getName(), server));
    return command;
  }

  /** {@return the command line of a server that exits when its standard input closes} */
  public static List<String> server(String classPath, String mainClass) {
    List<String> command = java();
    command.addAll(List.of("-Xmx1g", "-XX:-UsePerfData"));
    command.addAll(List.of("-cp", classPath + File.pathSeparator + ownLocation()));
    command.addAll(List.of(ChildProcess.class.getName(), mainClass, "--port", "0"));
    return command;
  }

  /** {@return the command line of our own main class, which exits when standard input closes} */
  public static List<String> own(Class<?> mainClass, List<String> arguments) {
    List<String> command = java();
    command.addAll(List.of("-Xmx128m", "-XX:+UseSerialGC"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path", "")));
    command.addAll(List.of(ChildProcess.class.getName(), mainClass.getName()));
    command.addAll(arguments);
    return command;
  }

  /** {@return where this JVM and those that it starts put temporary files} */
  static Path temporaryDirectory() {
    return Path.of(System.getProperty("java.io.tmpdir", "/tmp"));
  }

  private static List<String> java() {
    return new ArrayList<>(
        List.of(
            Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
            "-Djava.io.tmpdir=" + temporaryDirectory()));
  }

  /** The jar or class directory that contains {@link ChildProcess}. */
  private static String ownLocation() {
    try {
      return Path.of(ChildProcess.class.getProtectionDomain().getCodeSource().getLocation().toURI())
          .toString();
    } catch (URISyntaxException e) {
      throw new IllegalStateException("this class's location is not a path", e);
    }
  }
}
