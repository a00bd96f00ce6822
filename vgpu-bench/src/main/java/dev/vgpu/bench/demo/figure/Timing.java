package dev.vgpu.bench.demo.figure;

/**
 * How long the parts of the demo take. Immutable.
 *
 * @param rounds how many slices each compared phase is cut into
 * @param onlineNs how long each compared phase takes, all its slices together
 * @param offlineAloneNs how long the offline job runs alone
 * @param sharesNs how long each of the two 75/25 phases takes
 * @param sixModelsNs how long the six models take
 * @param burstFromNs when their burst begins
 * @param burstToNs when their burst ends
 * @param warmUpNs how long the warm-up sends requests, which are not counted
 * @param leadInNs how long each slice runs before it is measured
 */
public record Timing(
    int rounds,
    long onlineNs,
    long offlineAloneNs,
    long sharesNs,
    long sixModelsNs,
    long burstFromNs,
    long burstToNs,
    long warmUpNs,
    long leadInNs) {
  private static final long SECOND_NS = 1_000_000_000;
  // Starting two processes, measuring the cost of a request, and writing the report.
  private static final long OVERHEAD_SECONDS = 7;
  // The last answers of a slice, and the start of the next one.
  private static final long BETWEEN_SLICES_NS = SECOND_NS / 4;
  private static final int COMPARED_PHASES = 3;
  private static final int OTHER_PHASES = 4;

  /** {@return the times of a demo of that length} */
  public static Timing of(DemoOptions.Length length) {
    return switch (length) {
      case FULL -> ofTenths(3, 180, 40, 80, 110, 20, 60, 30, 5);
      case QUICK -> ofTenths(1, 60, 30, 60, 90, 20, 50, 20, 5);
      case BRIEF -> ofTenths(1, 5, 3, 3, 10, 2, 6, 2, 1);
    };
  }

  /** {@return about how long the whole demo takes, in seconds} */
  public long totalSeconds() {
    long slices = (long) rounds * COMPARED_PHASES + OTHER_PHASES;
    long measuredNs =
        COMPARED_PHASES * onlineNs + offlineAloneNs + 2 * sharesNs + sixModelsNs + warmUpNs;
    return (measuredNs + slices * (leadInNs + BETWEEN_SLICES_NS)) / SECOND_NS + OVERHEAD_SECONDS;
  }

  private static Timing ofTenths(int rounds, int... tenths) {
    long tenthNs = SECOND_NS / 10;
    return new Timing(
        rounds,
        tenths[0] * tenthNs,
        tenths[1] * tenthNs,
        tenths[2] * tenthNs,
        tenths[3] * tenthNs,
        tenths[4] * tenthNs,
        tenths[5] * tenthNs,
        tenths[6] * tenthNs,
        tenths[7] * tenthNs);
  }
}
