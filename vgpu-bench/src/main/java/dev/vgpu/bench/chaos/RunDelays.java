package dev.vgpu.bench.chaos;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * For how long threads were ready to run and did not get a processor, as the kernel counts it.
 * Confined to one thread.
 */
final class RunDelays {
  private Map<Path, Long> before = new HashMap<>();
  private Map<Path, Long> now = new HashMap<>();

  /** Begins a look at all processes; who is not looked at is forgotten. */
  void begin() {
    before = now;
    now = new HashMap<>();
  }

  /**
   * {@return how long the thread of a process that waited most has waited since the last look, in
   * milliseconds; 0 where the kernel does not count, or it has ended}
   *
   * @param pid the process
   */
  double ofMs(long pid) {
    long most = 0;
    Path tasks = Path.of("/proc", Long.toString(pid), "task");
    try (DirectoryStream<Path> each = Files.newDirectoryStream(tasks)) {
      for (Path task : each) {
        long delayNs = delayNs(task);
        most = Math.max(most, delayNs - before.getOrDefault(task, 0L));
        now.put(task, delayNs);
      }
    } catch (IOException | java.nio.file.DirectoryIteratorException e) {
      return most / 1e6; // It has ended.
    }
    return most / 1e6;
  }

  private static long delayNs(Path task) throws IOException {
    try {
      String[] fields = Files.readString(task.resolve("schedstat"), US_ASCII).split(" ", -1);
      return fields.length < 2 ? 0 : Long.parseLong(fields[1]);
    } catch (NoSuchFileException | NumberFormatException e) {
      return 0;
    }
  }
}
