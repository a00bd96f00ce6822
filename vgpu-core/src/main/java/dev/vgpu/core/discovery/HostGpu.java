package dev.vgpu.core.discovery;

import com.sun.management.OperatingSystemMXBean;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * This machine's CPU, represented as a GPU. On machines without a GPU, calls take turns on it.
 *
 * @param model the processor's name and the number of processors
 * @param memory the memory of this machine, or of the container that this JVM runs in
 * @param usableMemory the memory that was available when this record was created
 */
public record HostGpu(String model, MemorySize memory, MemorySize usableMemory)
    implements PhysicalGpu {
  /** The provider's name. */
  public static final String PROVIDER = "host";

  private static final GpuId ID = new GpuId("host");
  private static final Pattern TOTAL = Pattern.compile("MemTotal:\\s*(\\d{1,15}) kB\\s*");
  private static final Pattern DIGITS = Pattern.compile("\\d{1,18}");

  /** Memory limits of control groups, version 2 and version 1. */
  private static final List<Path> CONTAINER_LIMITS =
      List.of(
          Path.of("/sys/fs/cgroup/memory.max"),
          Path.of("/sys/fs/cgroup/memory/memory.limit_in_bytes"));

  private static final Pattern AVAILABLE = Pattern.compile("MemAvailable:\\s*(\\d{1,15}) kB\\s*");

  static HostGpu ofThisMachine() {
    List<String> meminfo = lines(Path.of("/proc/meminfo"));
    long machineBytes = bytes(TOTAL, meminfo, Long.MAX_VALUE);
    long totalBytes = Math.min(machineBytes, containerBytes());
    if (totalBytes == Long.MAX_VALUE) {
      totalBytes = totalBytesOfJdk();
    }
    long availableBytes = availableBytes(meminfo, totalBytes);
    int processors = Runtime.getRuntime().availableProcessors();
    String model = modelName(lines(Path.of("/proc/cpuinfo"))) + " (" + processors + " processors)";
    return new HostGpu(
        model,
        MemorySize.ofBytes(totalBytes),
        MemorySize.ofBytes(Math.min(totalBytes, availableBytes)));
  }

  /** Used only where there is no {@code /proc}: the management beans take 30 ms to load. */
  private static long totalBytesOfJdk() {
    return ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class).getTotalMemorySize();
  }

  /** The memory limit of this JVM's container; {@code Long.MAX_VALUE} if there is none. */
  private static long containerBytes() {
    for (Path limit : CONTAINER_LIMITS) {
      for (String line : lines(limit)) {
        if (DIGITS.matcher(line).matches()) {
          return Long.parseLong(line);
        }
      }
    }
    return Long.MAX_VALUE;
  }

  /** {@code MemAvailable} of {@code /proc/meminfo}; the fallback if it is missing. */
  static long availableBytes(List<String> meminfo, long fallback) {
    return bytes(AVAILABLE, meminfo, fallback);
  }

  private static long bytes(Pattern pattern, List<String> meminfo, long fallback) {
    for (String line : meminfo) {
      Matcher matcher = pattern.matcher(line);
      if (matcher.matches()) {
        return Long.parseLong(matcher.group(1)) * 1024;
      }
    }
    return fallback;
  }

  /** The first {@code model name} of {@code /proc/cpuinfo}; {@code CPU} if there is none. */
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
      return List.of(); // not Linux, or no permission: the fallbacks are good enough
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
