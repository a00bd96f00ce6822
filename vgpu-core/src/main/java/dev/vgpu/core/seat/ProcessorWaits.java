package dev.vgpu.core.seat;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.vgpu.core.NanoClock;
import dev.vgpu.files.ProcessStat;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * The time that threads of this process were ready to run but had no processor, as counted by the
 * kernel: the second number of {@code /proc/PID/task/TID/schedstat}, in nanoseconds (see
 * Documentation/scheduler/sched-stats.rst of Linux). The kernel counts a wait only when it ends. So
 * a thread that is ready (state R) and has not run since the last reading counts as waiting since
 * then. Confined to one thread.
 */
final class ProcessorWaits {
  private static final Path TASKS = Path.of("/proc/self/task");
  private static final long MILLI_NS = 1_000_000;

  /** A thread that has waited less than this for a processor had time to do its work. */
  static final long MOST_WAITED_NS = 10 * MILLI_NS;

  private static final long LOOK_NS = 10 * MILLI_NS;
  private static final long MOST_HANGING_NS = 50 * MILLI_NS;
  private static final long MOST_LATE_NS = 5_000 * MILLI_NS;

  private final Path tasks;
  private final LongSupplier clock;
  private Map<Path, Times> before = new HashMap<>();
  private long beforeNs;

  ProcessorWaits(LongSupplier clock) {
    this(TASKS, clock);
  }

  /** Reads another directory in place of {@code /proc/self/task}. */
  ProcessorWaits(Path tasks, LongSupplier clock) {
    this.tasks = tasks;
    this.clock = clock;
    this.beforeNs = clock.getAsLong();
  }

  /** The times of one thread, as counted by the kernel. */
  private record Times(long ranNs, long waitedNs) {
    static final Times NONE = new Times(0, 0);
  }

  /**
   * {@return the longest wait of a thread since the last call; for a new thread, since its start; 0
   * if the kernel does not count}
   */
  long mostSinceLastNs() {
    Map<Path, Times> now = new HashMap<>();
    long nowNs = clock.getAsLong();
    long most = 0;
    try (DirectoryStream<Path> all = Files.newDirectoryStream(tasks)) {
      for (Path task : all) {
        Times times = times(task);
        Times last = before.getOrDefault(task, Times.NONE);
        now.put(task, times);
        boolean waits = times.equals(last) && !times.equals(Times.NONE) && isReady(task);
        most = Math.max(most, waits ? nowNs - beforeNs : times.waitedNs - last.waitedNs);
      }
    } catch (IOException | DirectoryIteratorException e) {
      return 0;
    }
    before = now;
    beforeNs = nowNs;
    return most;
  }

  /** Has a thread do some work, or does it here if the system gives no more threads. */
  static Thread started(Function<Runnable, Thread> threads, Runnable work) {
    Thread thread = threads.apply(work);
    thread.setDaemon(true);
    try {
      thread.start();
    } catch (OutOfMemoryError e) {
      work.run();
    }
    return thread;
  }

  /**
   * Waits until all threads have ended or one seems to hang. One seems to hang after {@value
   * #MOST_HANGING_NS} ns during which no thread of this process waited for a processor. Waits for
   * about {@value #MOST_LATE_NS} ns at most.
   */
  static void awaitEnd(List<Thread> threads, NanoClock clock) {
    ProcessorWaits waits = new ProcessorWaits(clock::nanoTime);
    waits.mostSinceLastNs();
    long beganNs = clock.nanoTime();
    long lookedNs = beganNs;
    long hangingNs = 0;
    while (threads.stream().anyMatch(Thread::isAlive)
        && hangingNs < MOST_HANGING_NS
        && lookedNs - beganNs < MOST_LATE_NS) {
      LockSupport.parkNanos(threads, LOOK_NS / 10);
      long nowNs = clock.nanoTime();
      if (nowNs - lookedNs >= LOOK_NS) {
        hangingNs += waits.mostSinceLastNs() > MOST_WAITED_NS / 2 ? 0 : LOOK_NS;
        lookedNs = nowNs;
      }
    }
  }

  private static Times times(Path task) {
    try {
      String[] numbers = Files.readString(task.resolve("schedstat"), ISO_8859_1).split(" ", -1);
      return numbers.length < 2
          ? Times.NONE
          : new Times(Long.parseLong(numbers[0]), Long.parseLong(numbers[1]));
    } catch (IOException | NumberFormatException e) {
      return Times.NONE; // the thread has ended, or the kernel does not count
    }
  }

  private static boolean isReady(Path task) {
    try {
      return ProcessStat.read(task).state() == 'R';
    } catch (IOException e) {
      return false;
    }
  }
}
