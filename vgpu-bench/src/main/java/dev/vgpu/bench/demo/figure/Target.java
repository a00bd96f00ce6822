package dev.vgpu.bench.demo.figure;

import java.util.List;
import java.util.Locale;

/**
 * A promise of vgpu, and the measurement against it. Immutable.
 *
 * @param title what the promise is about
 * @param value the measurement, in words
 * @param asked the promise, in words
 * @param isMet whether the measurement keeps the promise
 * @param sentence both in one sentence
 */
record Target(String title, String value, String asked, boolean isMet, String sentence) {

  /** {@return the targets, the most important first} */
  static List<Target> of(Figures figures) {
    return List.of(latency(figures), throughput(figures), shares(figures));
  }

  private static Target latency(Figures figures) {
    double ratio = figures.p99Ratio(Phase.VGPU);
    boolean met = ratio <= Figures.LONGEST_P99_RATIO;
    String sentence =
        format(
            "Beside the offline job, 99 of 100 online requests are answered within %.1f ms with"
                + " vgpu: %.2f times as long as alone (%.1f ms); without control it is %.1f ms,"
                + " %.2f times as long. The target, at most %.2f times, is %s.",
            figures.onlineP99(Phase.VGPU),
            ratio,
            figures.onlineP99(Phase.ONLINE_ALONE),
            figures.onlineP99(Phase.UNCONTROLLED),
            figures.p99Ratio(Phase.UNCONTROLLED),
            Figures.LONGEST_P99_RATIO,
            verdict(met));
    return new Target(
        "Online p99 with vgpu, against alone",
        format("%.2f ×", ratio),
        format("at most %.2f ×", Figures.LONGEST_P99_RATIO),
        met,
        sentence);
  }

  private static Target throughput(Figures figures) {
    double kept = figures.offlineKept(Phase.VGPU);
    boolean met = kept >= Figures.LEAST_OFFLINE_KEPT;
    String sentence =
        format(
            "Meanwhile the offline job embeds %.0f texts a second, which is %.0f %% of the %.0f for"
                + " which the online requests leave room. The target, at least %.0f %%, is %s.",
            figures.offlinePerSecond(Phase.VGPU),
            100 * kept,
            figures.offlineRoomPerSecond(),
            100 * Figures.LEAST_OFFLINE_KEPT,
            verdict(met));
    return new Target(
        "Offline work, of what the device has left",
        format("%.0f %%", 100 * kept),
        format("at least %.0f %%", 100 * Figures.LEAST_OFFLINE_KEPT),
        met,
        sentence);
  }

  private static Target shares(Figures figures) {
    double points = figures.worstSharePoints();
    boolean met = points <= Figures.SHARE_TOLERANCE_POINTS;
    Figures.Pair fixed = figures.pair(Phase.FIXED_SHARE);
    Figures.Pair burst = figures.pair(Phase.BURST_SHARE);
    String sentence =
        format(
            "Two offline tenants at 75/25 held %.1f/%.1f (fixed) and %.1f/%.1f (burst) of the time"
                + " that the device was used; over any 5 s the larger was at worst %.2f points"
                + " off. The target, within %.0f point, is %s.",
            fixed.large(),
            fixed.small(),
            burst.large(),
            burst.small(),
            points,
            Figures.SHARE_TOLERANCE_POINTS,
            verdict(met));
    return new Target(
        "75/25 share, worst over any 5 s",
        format("±%.2f points", points),
        format("within ±%.0f point", Figures.SHARE_TOLERANCE_POINTS),
        met,
        sentence);
  }

  private static String verdict(boolean met) {
    return met ? "met" : "MISSED";
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
