package dev.vgpu.cli.bench;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.SourceCheckout;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Runs what vgpu-bench has as a process, with mounts of its own where that is possible. */
final class BenchProcess {
  /** Ways to get a mount namespace of one's own; the last one: none. */
  private static final List<List<String>> NAMESPACES =
      List.of(
          List.of("unshare", "--mount", "--propagation", "private"),
          List.of("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"),
          List.of());

  private BenchProcess() {}

  /** {@return its exit code} Ended by a signal, it cleans up first. */
  static int run(Map<String, String> environment, String name, List<String> options)
      throws UserException, IOException, InterruptedException {
    SourceCheckout checkout = SourceCheckout.require(environment, name);
    List<String> command = new ArrayList<>(namespace());
    command.addAll(
        List.of(
            Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-cp",
            checkout.classPath("vgpu-bench", "vgpu-bench"),
            "dev.vgpu.bench.Bench",
            name));
    command.addAll(options);
    Process process = new ProcessBuilder(command).inheritIO().start();
    Thread hook = new Thread(() -> end(process), "vgpu-" + name + "-end");
    Runtime.getRuntime().addShutdownHook(hook);
    int exitCode = process.waitFor();
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // This JVM is ending already.
    }
    return exitCode;
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

  /** It has processes and files to clean up. */
  private static void end(Process process) {
    process.destroy();
    try {
      process.waitFor();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
