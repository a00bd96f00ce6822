package dev.vgpu.cli.bench;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.SourceCheckout;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs a part of vgpu-bench as a process, and ends it when this command is ended. */
final class BenchProcess {
  /** Ways to get a mount namespace of one's own; the last one: none. */
  private static final List<List<String>> NAMESPACES =
      List.of(
          List.of("unshare", "--mount", "--propagation", "private"),
          List.of("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"),
          List.of());

  /** For a process whose own work is short. */
  static final List<String> QUICK_START = List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");

  private BenchProcess() {}

  /** Runs a part with mounts of its own, where that is possible; it takes its time to clean up. */
  static int runApart(Map<String, String> environment, String name, List<String> options)
      throws UserException, IOException, InterruptedException {
    List<String> command = new ArrayList<>(namespace());
    command.addAll(java(classPath(environment, name), QUICK_START));
    command.add(name);
    command.addAll(options);
    return run(command, name, Long.MAX_VALUE);
  }

  /** {@return the class path of the checkout's vgpu-bench} */
  static String classPath(Map<String, String> environment, String name) throws UserException {
    return SourceCheckout.require(environment, name).classPath("vgpu-bench", "vgpu-bench");
  }

  /** {@return the JVM of this command, with options, and the main class of vgpu-bench} */
  static List<String> java(String classPath, List<String> options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home", ""), "bin", "java").toString());
    command.addAll(options);
    command.addAll(List.of("-cp", classPath, "dev.vgpu.bench.Bench"));
    return command;
  }

  /**
   * {@return the exit code of a process that reads and writes where this one does}
   *
   * @param endingSeconds how long the process may clean up when this one is ended
   */
  static int run(List<String> command, String name, long endingSeconds)
      throws IOException, InterruptedException {
    Process process = new ProcessBuilder(command).inheritIO().start();
    Thread hook = new Thread(() -> end(process, endingSeconds), "vgpu-" + name + "-end");
    Runtime.getRuntime().addShutdownHook(hook);
    int exitCode = process.waitFor();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // This JVM is ending already.
    }
    return exitCode;
  }

  private static void end(Process process, long seconds) {
    process.destroy();
    try {
      if (!process.waitFor(seconds, TimeUnit.SECONDS)) {
        process.destroyForcibly();
      }
    } catch (InterruptedException e) {
      process.destroyForcibly();
    }
  }

  private static List<String> namespace() throws InterruptedException {
    for (List<String> way : NAMESPACES) {
      List<String> command = new ArrayList<>(way);
      command.add("true");
      try {
        ProcessBuilder probe = new ProcessBuilder(command).redirectErrorStream(true);
        probe.redirectOutput(ProcessBuilder.Redirect.DISCARD);
        if (probe.start().waitFor() == 0) {
          return way;
        }
      } catch (IOException e) {
        // There is no such program here.
      }
    }
    return List.of();
  }
}
