package dev.vgpu.bench.harness;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.vgpu.files.ProcessStat;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * How long threads were runnable without getting a processor, as the kernel counts it. Confined to
 * one thread.
 */
public final class RunDelays {
  private static final List<Long> NOTHING = List.of(0L, 0L, 0L);

  private Map<Path, List<Long>> before = new HashMap<>();
  private Map<Path, List<Long>> now = new HashMap<>();

  /** Begins a look at all processes. Processes that are not looked at are forgotten. */
  public void begin() {
    before = now;
    now = new HashMap<>();
  }

  /**
   * {@return the longest time that a thread of a process has waited for a processor since the last
   * look, in milliseconds; 0 if the kernel does not count it, or the process has ended}
   *
   * @param pid the process
   */
  public double ofMs(long pid) {
    long most = 0;
    for (Path task : tasks(pid)) {
      List<Long> times = times(task);
      most = Math.max(most, times.get(1) - before.getOrDefault(task, NOTHING).get(1));
      now.put(task, times);
    }
    return most / 1e6;
  }

  /**
   * {@return whether a thread of a process is runnable and has not run since the last look}
   *
   * @param pid the process
   */
  public boolean isLeftStanding(long pid) {
    for (Path task : tasks(pid)) {
      List<Long> times = times(task);
      if (times.equals(now.get(task)) && !times.equals(NOTHING) && state(task) == 'R') {
        return true;
      }
    }
    return false;
  }

  /**
   * {@return the states of a process's threads, as {@code /proc} names them, for example {@code
   * RS}; empty if it has ended}
   *
   * @param pid the process
   */
  public static String states(long pid) {
    StringBuilder states = new StringBuilder();
    tasks(pid).forEach(task -> states.append(state(task)));
    return states.toString();
  }

  /**
   * {@return whether a process runs no code of its own any more} It is gone, or only the kernel has
   * work with it: its first thread is a zombie, and the others give back what they hold.
   *
   * @param pid the process
   */
  public static boolean hasEnded(long pid) {
    char first = state(Path.of("/proc", Long.toString(pid)));
    return first == '?' || first == 'Z' || first == 'X';
  }

  private static List<Path> tasks(long pid) {
    Path tasks = Path.of("/proc", Long.toString(pid), "task");
    try (Stream<Path> each = Files.list(tasks)) {
      return each.toList();
    } catch (IOException | UncheckedIOException e) {
      return List.of(); // It has ended.
    }
  }

  /** Nanoseconds that the thread ran, nanoseconds that it waited to run, and how often it ran. */
  private static List<Long> times(Path task) {
    String[] fields = read(task.resolve("schedstat")).strip().split(" ", -1);
    return fields.length < 3 ? NOTHING : Stream.of(fields).map(Long::valueOf).toList();
  }

  private static char state(Path task) {
    try {
      return ProcessStat.read(task).state();
    } catch (IOException e) {
      return '?'; // It has ended.
    }
  }

  private static String read(Path file) {
    try {
      return Files.readString(file, ISO_8859_1);
    } catch (IOException e) {
      return ""; // It has ended.
    }
  }
}
