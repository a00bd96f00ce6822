package dev.vgpu.cli.machine;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The machine as this process sees it, within the limits of its container. Immutable.
 *
 * @param cpu the processor's name
 * @param cores how many processors this process may use
 * @param memoryBytes how much memory there is
 * @param os name, version and architecture of the operating system
 * @param jdk version and vendor of the Java runtime
 */
public record Machine(String cpu, int cores, long memoryBytes, String os, String jdk) {
  private static final double BYTES_PER_GIB = 1L << 30;

  /** {@return this machine} */
  public static Machine current() {
    OperatingSystemMXBean system = ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
    return new Machine(
        cpuName(),
        Runtime.getRuntime().availableProcessors(),
        system.getTotalMemorySize(),
        property("os.name") + " " + property("os.version") + " " + property("os.arch"),
        property("java.version") + " (" + property("java.vendor") + ")");
  }

  /** {@return the description in one line} */
  public String description() {
    return String.format(
        Locale.ROOT,
        "%s, %d %s, %.1f GiB, %s, JDK %s",
        cpu,
        cores,
        cores == 1 ? "core" : "cores",
        memoryBytes / BYTES_PER_GIB,
        os,
        jdk);
  }

  private static String cpuName() {
    try (Stream<String> lines = Files.lines(Path.of("/proc/cpuinfo"), UTF_8)) {
      return lines
          .filter(line -> line.startsWith("model name"))
          .map(line -> line.substring(line.indexOf(':') + 1).strip())
          .findFirst()
          .orElse("unknown processor");
    } catch (IOException e) {
      return "unknown processor";
    }
  }

  private static String property(String name) {
    return System.getProperty(name, "unknown");
  }
}
