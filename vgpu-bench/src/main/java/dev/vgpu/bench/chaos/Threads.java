package dev.vgpu.bench.chaos;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.bench.harness.PoolProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * The stacks of the threads of all programs and seats, from the kernel and debuggers, for the case
 * that one hangs.
 */
final class Threads {
  private static final List<String> DEBUGGER =
      List.of("timeout", "20", "gdb", "-batch", "-ex", "thread apply all bt 15", "-p");

  private static final List<String> JAVA_DEBUGGER =
      List.of("timeout", "20", System.getProperty("java.home") + "/bin/jcmd");

  private Threads() {}

  static void tell(World world, Path into) throws IOException, InterruptedException {
    List<Program> programs =
        Stream.concat(world.witnesses.stream(), world.programs.stream()).toList();
    Files.writeString(
        into,
        programs.stream()
            .map(program -> program + ":\n" + of(program.child.pid()))
            .collect(Collectors.joining()),
        UTF_8);
    for (PoolProcess pool : world.seats.pools()) {
      String pid = Long.toString(pool.child().pid());
      debug(JAVA_DEBUGGER, List.of(pid, "Thread.print", "-l"), into);
      debug(JAVA_DEBUGGER, List.of(pid, "GC.heap_dump", into + "." + pid + ".hprof"), into);
    }
    for (Program program : programs) {
      debug(DEBUGGER, List.of(Long.toString(program.child.pid())), into);
    }
  }

  private static void debug(List<String> debugger, List<String> arguments, Path into)
      throws InterruptedException {
    List<String> command = new ArrayList<>(debugger);
    command.addAll(arguments);
    try {
      new ProcessBuilder(command)
          .redirectErrorStream(true)
          .redirectOutput(ProcessBuilder.Redirect.appendTo(into.toFile()))
          .start()
          .waitFor();
    } catch (IOException e) {
      return; // not on this machine
    }
  }

  private static String of(long pid) {
    try (Stream<Path> tasks = Files.list(Path.of("/proc", Long.toString(pid), "task"))) {
      return tasks.sorted().map(Threads::of).collect(Collectors.joining());
    } catch (IOException e) {
      return "  " + e + "\n";
    }
  }

  private static String of(Path task) {
    return Stream.of("comm", "wchan", "syscall", "schedstat")
        .map(file -> read(task.resolve(file)))
        .collect(Collectors.joining(" | ", "  " + task.getFileName() + " ", "\n"));
  }

  private static String read(Path file) {
    try {
      List<String> lines = Files.readAllLines(file, UTF_8);
      return String.join(" ", lines);
    } catch (IOException e) {
      return "?";
    }
  }
}
