package dev.vgpu.cli.demo;

import static java.util.Objects.requireNonNull;

import dev.vgpu.cli.trace.Trace;

/**
 * What the demo shall do. Immutable.
 *
 * @param trace the online load
 * @param loadPercent what the online requests use of the device when alone, 1 to 90 percent
 * @param length how long it takes
 * @param serverClassPath the sample server's class path
 * @param serverClass the sample server's main class
 * @param logs what becomes of the processes' logs and files
 */
public record DemoOptions(
    Trace trace,
    int loadPercent,
    Length length,
    String serverClassPath,
    String serverClass,
    Logs logs) {
  /** How long the demo takes. */
  public enum Length {
    /** Under two minutes. */
    FULL,
    /** About one minute; the figures are less sure. */
    QUICK,
    /** Some seconds; the figures mean nothing. For tests of the demo itself. */
    BRIEF
  }

  /** What becomes of the processes' logs and files. */
  public enum Logs {
    /** They are deleted. */
    DELETE,
    /** They stay, and the demo says where. */
    KEEP
  }

  /**
   * Checks the load.
   *
   * @throws IllegalArgumentException if the load is not within 1 to 90
   */
  public DemoOptions {
    requireNonNull(trace, "trace");
    requireNonNull(length, "length");
    requireNonNull(serverClassPath, "serverClassPath");
    requireNonNull(serverClass, "serverClass");
    requireNonNull(logs, "logs");
    if (loadPercent < 1 || loadPercent > 90) {
      throw new IllegalArgumentException(
          "a load is not within 1 to 90: loadPercent=" + loadPercent);
    }
  }

  Timing timing() {
    return Timing.of(length);
  }
}
