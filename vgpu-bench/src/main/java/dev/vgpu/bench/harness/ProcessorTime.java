package dev.vgpu.bench.harness;

import dev.vgpu.files.ProcessStat;
import dev.vgpu.files.ProcessStat.Field;
import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.function.Predicate;

/** Processor time, as the kernel counts it. */
public final class ProcessorTime {
  private static final long TICK_NS = 10_000_000;

  /** Field of /proc/stat. */
  private static final int IDLE = 3;

  private static final int IO_WAIT = 4;
  private static final int COUNTED = 8;

  private ProcessorTime() {}

  /**
   * {@return the processor time of a process so far, in nanoseconds, in steps of 10 ms; 0 if it has
   * ended}
   *
   * @param pid the process
   */
  public static long ofProcessNs(long pid) {
    try {
      ProcessStat stat = ProcessStat.read(Path.of("/proc", Long.toString(pid)));
      return TICK_NS
          * (stat.number(Field.USER_TICKS).orElseThrow()
              + stat.number(Field.SYSTEM_TICKS).orElseThrow());
    } catch (IOException e) {
      return 0;
    }
  }

  /**
   * {@return the processor time so far of a process's threads with a name, in nanoseconds}
   *
   * @param pid the process
   * @param name the name of the threads
   */
  public static long ofThreadsNs(long pid, String name) {
    return sumNs(pid, name::equals);
  }

  /**
   * {@return the processor time so far of a process's current threads, in nanoseconds, for cases
   * where {@link #ofProcessNs} is too coarse}
   *
   * @param pid the process
   */
  public static long ofLiveThreadsNs(long pid) {
    return sumNs(pid, name -> true);
  }

  private static long sumNs(long pid, Predicate<String> names) {
    long sumNs = 0;
    try (DirectoryStream<Path> threads =
        Files.newDirectoryStream(Path.of("/proc", Long.toString(pid), "task"))) {
      for (Path thread : threads) {
        sumNs += ofThreadNs(thread, names);
      }
    } catch (IOException e) {
      // It has just ended.
    }
    return sumNs;
  }

  private static long ofThreadNs(Path thread, Predicate<String> names) {
    try {
      if (names.test(Files.readString(thread.resolve("comm")).strip())) {
        return Long.parseLong(Files.readString(thread.resolve("schedstat")).split(" ", 2)[0]);
      }
    } catch (IOException e) {
      // It has just ended.
    }
    return 0;
  }

  /** {@return the processor time of all processes since boot, in nanoseconds, in steps of 10 ms} */
  public static long ofMachineNs() {
    try {
      String line = Files.readAllLines(Path.of("/proc/stat")).get(0);
      long[] ticks =
          Arrays.stream(line.strip().split("\\s+"), 1, 1 + COUNTED)
              .mapToLong(Long::parseLong)
              .toArray();
      return (Arrays.stream(ticks).sum() - ticks[IDLE] - ticks[IO_WAIT]) * TICK_NS;
    } catch (IOException e) {
      return 0;
    }
  }
}
