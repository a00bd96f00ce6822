package dev.vgpu.bench.demo.figure;

import static java.util.Objects.requireNonNull;

import dev.vgpu.simulation.trace.Trace;

/**
 * The demo's options. Immutable.
 *
 * @param trace the online load
 * @param loadPercent the part of the device that the online requests use when alone, 1 to 90
 *     percent
 * @param length how long the demo takes
 * @param serverClassPath the sample server's class path
 * @param serverClass the sample server's main class
 * @param logs whether the processes' logs and files are kept
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
    /** About one minute; the figures are less precise. */
    QUICK,
    /** A few seconds; the figures mean nothing. For tests of the demo itself. */
    BRIEF
  }

  /** Whether the processes' logs and files are kept. */
  public enum Logs {
    /** They are deleted. */
    DELETE,
    /** They are kept, and the demo prints where. */
    KEEP
  }

  /**
   * Checks the load.
   *
   * @throws IllegalArgumentException if the load is not from 1 to 90
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

  /** {@return how long the phases are} */
  public Timing timing() {
    return Timing.of(length);
  }
}
