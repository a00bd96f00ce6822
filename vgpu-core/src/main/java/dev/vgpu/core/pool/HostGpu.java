package dev.vgpu.core.pool;

import com.sun.management.OperatingSystemMXBean;
import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * This machine's CPU as a GPU, for machines without one: calls take turns on it just so.
 *
 * @param model the processor's name and how many there are
 * @param memory the memory of this machine, or of the container that this runs in
 * @param usableMemory what of it was available when this was made
 */
record HostGpu(String model, MemorySize memory, MemorySize usableMemory) implements PhysicalGpu {
  static final String PROVIDER = "host";
  private static final GpuId ID = new GpuId("host");
  private static final Pattern AVAILABLE = Pattern.compile("MemAvailable:\\s*(\\d{1,15}) kB\\s*");

  static HostGpu ofThisMachine() {
    OperatingSystemMXBean os = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    long totalBytes = os.getTotalMemorySize();
    long availableBytes = availableBytes(lines(Path.of("/proc/meminfo")), totalBytes);
    int processors = Runtime.getRuntime().availableProcessors();
    String model = modelName(lines(Path.of("/proc/cpuinfo"))) + " (" + processors + " processors)";
    return new HostGpu(
        model,
        MemorySize.ofBytes(totalBytes),
        MemorySize.ofBytes(Math.min(totalBytes, availableBytes)));
  }

  /** What {@code /proc/meminfo} calls available; the fallback where it does not say. */
  static long availableBytes(List<String> meminfo, long fallback) {
    for (String line : meminfo) {
      Matcher matcher = AVAILABLE.matcher(line);
      if (matcher.matches()) {
        return Long.parseLong(matcher.group(1)) * 1024;
      }
    }
    return fallback;
  }

  /** The first {@code model name} of {@code /proc/cpuinfo}; {@code CPU} where there is none. */
  static String modelName(List<String> cpuinfo) {
    for (String line : cpuinfo) {
      int colon = line.indexOf(':');
      if (colon > 0 && line.substring(0, colon).trim().equals("model name")) {
        return line.substring(colon + 1).trim();
      }
    }
    return "CPU";
  }

  private static List<String> lines(Path file) {
    try {
      return Files.readAllLines(file, StandardCharsets.UTF_8);
    } catch (IOException e) {
      return List.of(); // not Linux, or not allowed: the fallbacks are good enough
    }
  }

  @Override
  public GpuId id() {
    return ID;
  }

  @Override
  public String provider() {
    return PROVIDER;
  }
}
