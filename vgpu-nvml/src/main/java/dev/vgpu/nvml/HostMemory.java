package dev.vgpu.nvml;

import dev.vgpu.request.MemorySize;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * The host's memory, which is also that of a GPU without memory of its own, such as GB10. For such
 * a GPU NVML answers {@code NVML_ERROR_NOT_SUPPORTED}, <a
 * href="https://github.com/XuehaiPan/nvitop/pull/208">measured on GB10 with driver 580.173.02</a>.
 * Every program of the machine takes from this memory, so it is read anew each time.
 *
 * @param total all of it
 * @param available what can be taken without swapping, as the kernel estimates it
 */
record HostMemory(MemorySize total, MemorySize available) {
  /** A GPU's property, with this value if its memory is the host's. */
  static final String PROPERTY = "memory";

  static final String VALUE = "the host's";

  private static final Path MEMINFO = Path.of("/proc/meminfo");
  private static final int MOST_DIGITS = 12;
  private static final long KIBI = 1_024;

  /** {@return the figures of now; empty if the kernel does not tell} */
  static Optional<HostMemory> read() {
    try {
      return parse(Files.readAllLines(MEMINFO));
    } catch (IOException e) {
      return Optional.empty();
    }
  }

  /** Parses the lines of {@code /proc/meminfo}, proc_meminfo(5). */
  static Optional<HostMemory> parse(List<String> lines) {
    return of(lines, "MemTotal:")
        .flatMap(
            total ->
                of(lines, "MemAvailable:")
                    .filter(available -> available.compareTo(total) <= 0)
                    .map(available -> new HostMemory(total, available)));
  }

  private static Optional<MemorySize> of(List<String> lines, String name) {
    return lines.stream()
        .map(line -> line.strip().split("\\s+", -1))
        .filter(words -> words.length == 3 && words[0].equals(name) && words[2].equals("kB"))
        .map(words -> words[1])
        .filter(number -> number.matches("[0-9]{1," + MOST_DIGITS + "}"))
        .map(number -> MemorySize.ofBytes(Long.parseLong(number) * KIBI))
        .findFirst();
  }

  MemorySize used() {
    return MemorySize.ofBytes(total.bytes() - available.bytes());
  }
}
