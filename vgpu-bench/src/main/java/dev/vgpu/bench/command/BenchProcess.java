package dev.vgpu.bench.command;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** Runs a part of this module as a child process that terminates with this command. */
final class BenchProcess {
  /** Commands that give a process its own mount namespace, tried in order; the last one is none. */
  private static final List<List<String>> NAMESPACES =
      List.of(
          List.of("unshare", "--mount", "--propagation", "private"),
          List.of("unshare", "--user", "--map-root-user", "--mount", "--propagation", "private"),
          List.of());

  /** JVM options for a short-lived process. */
  static final List<String> QUICK_START = List.of("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1");

  private BenchProcess() {}

  /**
   * Runs a command's part in its own mount namespace, if permitted. It may take time to clean up.
   */
  static int runApart(String name, CommandSpec spec) throws IOException, InterruptedException {
    List<String> command = new ArrayList<>(namespace());
    command.addAll(java(QUICK_START));
    command.add(name);
    command.addAll(arguments(spec));
    return run(command, name, Long.MAX_VALUE);
  }

  /** {@return what was given of a command's own options and parameters} */
  static List<String> arguments(CommandSpec spec) {
    List<String> arguments = new ArrayList<>();
    for (ArgSpec given : spec.commandLine().getParseResult().matchedArgs()) {
      if (given instanceof OptionSpec option) {
        if (!option.inherited()) {
          String value =
              option.arity().max() == 0 ? "" : "=" + option.originalStringValues().get(0);
          arguments.add(option.longestName() + value);
        }
      } else {
        arguments.addAll(given.originalStringValues());
      }
    }
    return arguments;
  }

  /** {@return this JVM's class path} */
  static String classPath() {
    return System.getProperty("java.class.path", "");
  }

  /** {@return a command line with options for this module's main class, as this JVM runs it} */
  static List<String> java(List<String> options) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home", ""), "bin", "java").toString());
    command.addAll(options);
    command.addAll(List.of("-cp", classPath(), "dev.vgpu.bench.Bench"));
    return command;
  }

  /**
   * {@return the exit code of a process that inherits this one's standard streams}
   *
   * @param endingSeconds how long the process may clean up when this one is terminated
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
      // This JVM is already shutting down.
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
        // No such program on this machine.
      }
    }
    return List.of();
  }
}
