package dev.vgpu.cli.demo;

/**
 * How long the parts of the demo take. Immutable.
 *
 * @param rounds into how many slices each compared phase is cut
 * @param onlineNs how long each compared phase takes, all its slices together
 * @param offlineAloneNs how long the offline job runs alone
 * @param sharesNs how long each of the two 75/25 phases takes
 * @param sixModelsNs how long the six models take
 * @param burstFromNs when their burst begins
 * @param burstToNs when their burst ends
 */
record Timing(
    int rounds,
    long onlineNs,
    long offlineAloneNs,
    long sharesNs,
    long sixModelsNs,
    long burstFromNs,
    long burstToNs) {
  private static final long SECOND_NS = 1_000_000_000;

  /** Before a slice is measured: the offline job's first batches, and the clock of the device. */
  static final long LEAD_IN_NS = SECOND_NS / 2;

  /** The requests that warm everything up, and are not counted. */
  static final long WARM_UP_NS = 3 * SECOND_NS;

  /** {@return under two minutes in all} */
  static Timing full() {
    return new Timing(3, tenths(195), tenths(50), tenths(80), tenths(120), tenths(30), tenths(70));
  }

  /** {@return about half of that, and less sure figures} */
  static Timing quick() {
    return new Timing(1, tenths(60), tenths(30), tenths(60), tenths(90), tenths(20), tenths(50));
  }

  /** {@return about how long the whole demo takes, in seconds} */
  long totalSeconds() {
    long slices = rounds * 3L + 4;
    long totalNs =
        3 * onlineNs + offlineAloneNs + 2 * sharesNs + sixModelsNs + slices * (LEAD_IN_NS + SECOND_NS / 4);
    return (totalNs + WARM_UP_NS) / SECOND_NS + 6;
  }

  private static long tenths(long tenthsOfSecond) {
    return tenthsOfSecond * (SECOND_NS / 10);
  }
}
