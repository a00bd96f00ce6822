package dev.vgpu.core.seat;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import dev.vgpu.core.NanoClock;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/**
 * For how long threads of this process were ready to run and did not get a processor, as the kernel
 * counts it (the second number of {@code /proc/PID/task/TID/schedstat}, in nanoseconds; see
 * Documentation/scheduler/sched-stats.rst of Linux). Confined to one thread.
 */
final class ProcessorWaits {
  private static final Path TASKS = Path.of("/proc/self/task");
  private static final long MILLI_NS = 1_000_000;

  /** Within that time a thread that waits no longer for a processor does what it has to. */
  static final long MOST_WAITED_NS = 10 * MILLI_NS;

  private static final long LOOK_NS = 10 * MILLI_NS;
  private static final long MOST_HANGING_NS = 50 * MILLI_NS;
  private static final long MOST_LATE_NS = 5_000 * MILLI_NS;

  private Map<Path, Long> before = new HashMap<>();

  /**
   * {@return how long the thread that waited most has waited since the last time that this was
   * asked; of a thread that was not there then, since its start. 0: the kernel does not count}
   */
  long mostSinceLastNs() {
    Map<Path, Long> now = new HashMap<>();
    long most = 0;
    try (DirectoryStream<Path> tasks = Files.newDirectoryStream(TASKS)) {
      for (Path task : tasks) {
        long waited = waitedNs(task);
        now.put(task, waited);
        most = Math.max(most, waited - before.getOrDefault(task, 0L));
      }
    } catch (IOException | DirectoryIteratorException e) {
      return 0;
    }
    before = now;
    return most;
  }

  /**
   * Waits until a thread has ended, or seems to hang: until it has taken {@value #MOST_HANGING_NS}
   * ns in which no thread of this process waited for a processor, {@value #MOST_LATE_NS} ns at
   * most.
   */
  static void awaitEnd(Thread thread, NanoClock clock) {
    ProcessorWaits waits = new ProcessorWaits();
    waits.mostSinceLastNs();
    long beganNs = clock.nanoTime();
    long lookedNs = beganNs;
    long hangingNs = 0;
    while (thread.isAlive() && hangingNs < MOST_HANGING_NS && lookedNs - beganNs < MOST_LATE_NS) {
      LockSupport.parkNanos(thread, LOOK_NS / 10);
      long nowNs = clock.nanoTime();
      if (nowNs - lookedNs >= LOOK_NS) {
        hangingNs += waits.mostSinceLastNs() > MOST_WAITED_NS / 2 ? 0 : LOOK_NS;
        lookedNs = nowNs;
      }
    }
  }

  private static long waitedNs(Path task) {
    try {
      String[] numbers = Files.readString(task.resolve("schedstat"), ISO_8859_1).split(" ", -1);
      return numbers.length < 2 ? 0 : Long.parseLong(numbers[1]);
    } catch (IOException | NumberFormatException e) {
      return 0; // it has ended
    }
  }
}
