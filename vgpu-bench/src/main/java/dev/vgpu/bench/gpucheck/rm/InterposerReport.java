package dev.vgpu.bench.gpucheck.rm;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * The report of {@code libvgpu_rm.so}: the kernel module's ledger of one program. Immutable.
 *
 * @param values the numbers by name
 */
public record InterposerReport(Map<String, Long> values) {
  /** Copies the map. */
  public InterposerReport {
    values = Map.copyOf(values);
  }

  /**
   * Reads a report.
   *
   * @param file the file that VGPU_RM_REPORT names
   * @return its current numbers
   * @throws IOException if the library did not write it
   */
  public static InterposerReport read(Path file) throws IOException {
    return parse(Files.readString(file));
  }

  /** Lines that are not a name and a number are left out. */
  static InterposerReport parse(String text) {
    Map<String, Long> values = new HashMap<>();
    for (String line : text.split("\n", -1)) {
      String[] words = line.strip().split(" +", -1);
      if (words.length == 2 && words[1].matches("[0-9]{1,18}")) {
        values.put(words[0], Long.valueOf(words[1]));
      }
    }
    return new InterposerReport(values);
  }

  /** {@return the bytes of device memory that the program is charged for} */
  public long usedBytes() {
    return values.getOrDefault("used", 0L);
  }

  /** {@return the most bytes that it was charged for at once} */
  public long peakBytes() {
    return values.getOrDefault("peak", 0L);
  }

  /** {@return how many allocations passed the library} */
  public long allocations() {
    return values.getOrDefault("allocations", 0L);
  }
}
