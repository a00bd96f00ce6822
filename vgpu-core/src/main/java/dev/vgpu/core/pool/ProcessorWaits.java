package dev.vgpu.core.pool;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * For how long threads of this process were ready to run and did not get a processor, as the kernel
 * counts it (the second number of {@code /proc/PID/task/TID/schedstat}, in nanoseconds; see
 * Documentation/scheduler/sched-stats.rst of Linux). Confined to one thread.
 */
final class ProcessorWaits {
  private static final Path TASKS = Path.of("/proc/self/task");

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

  private static long waitedNs(Path task) {
    try {
      String[] numbers = Files.readString(task.resolve("schedstat"), ISO_8859_1).split(" ", -1);
      return numbers.length < 2 ? 0 : Long.parseLong(numbers[1]);
    } catch (IOException | NumberFormatException e) {
      return 0; // it has ended
    }
  }
}
