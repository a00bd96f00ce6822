package dev.vgpu.bench.colocation;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.DoubleBinaryOperator;

/**
 * The figures for programs. For each key, {@code modes.MODE.LOAD} has the worse of the values with
 * one and with three offline programs; {@code one} and {@code three} beside it have all figures of
 * each.
 */
final class ColocationFigures {
  private static final double NOISY_PERCENT = 10;

  /** How many times the 99th percentile alone the 99th percentile of online requests may be. */
  static final double SLACK = 1.02;

  private final List<Colocation.Load> loads;
  private final int[] trainers;
  private final Map<String, String> replayed;

  ColocationFigures(List<Colocation.Load> loads, int[] trainers, Map<String, String> replayed) {
    this.loads = loads;
    this.trainers = trainers;
    this.replayed = replayed;
  }

  Map<String, Object> json(ColocationOptions options) {
    Map<String, Object> json = new LinkedHashMap<>();
    json.put("trace", options.trace().word());
    json.put("kernels", options.kernels().word());
    json.put("model", options.trace().model());
    json.put("replayed", replayed);
    Map<String, Object> modes = new LinkedHashMap<>();
    for (Mode mode : Mode.values()) {
      Map<String, Object> byLoad = new LinkedHashMap<>();
      for (Colocation.Load load : loads) {
        byLoad.put(Integer.toString(load.percent()), atLoad(mode, load));
      }
      modes.put(mode.word(), byLoad);
    }
    json.put("modes", modes);
    json.put("longest_offline_kernel_ms", rounded(longestKernelMs()));
    json.put("alone_again", aloneAgain());
    Map<String, Object> seconds = new LinkedHashMap<>();
    loads.forEach(load -> seconds.put(Integer.toString(load.percent()), Math.round(load.s())));
    json.put("seconds", seconds);
    json.put("notes", notes());
    return json;
  }

  private Map<String, Object> atLoad(Mode mode, Colocation.Load load) {
    Outcome alone = load.of(Mode.ALONE, 0);
    if (mode == Mode.ALONE) {
      return figures(alone, alone);
    }
    Outcome one = load.of(mode, trainers[0]);
    Outcome three = load.of(mode, trainers[1]);
    Map<String, Object> first = figures(one, alone);
    Map<String, Object> second = figures(three, alone);
    Map<String, Object> worse = new LinkedHashMap<>();
    first.forEach(
        (key, value) -> {
          DoubleBinaryOperator pick =
              key.equals("offline_of_ideal") || key.equals("window_s") ? Math::min : Math::max;
          Object other = second.get(key);
          worse.put(
              key,
              value instanceof Double left && other instanceof Double right
                  ? (Object) pick.applyAsDouble(left, right)
                  : value);
        });
    worse.put("one", first);
    worse.put("three", second);
    return worse;
  }

  /** {@return the figures of an outcome, relative to the outcome alone} */
  static Map<String, Object> figures(Outcome outcome, Outcome alone) {
    Map<String, Object> figures = new LinkedHashMap<>();
    put(figures, "online_p50_ms", outcome.percentileMs(50));
    put(figures, "online_p99_ms", outcome.percentileMs(99));
    put(figures, "online_p999_ms", outcome.percentileMs(99.9));
    put(figures, "online_p50_ratio", outcome.percentileMs(50) / alone.percentileMs(50));
    put(figures, "online_p99_ratio", outcome.percentileMs(99) / alone.percentileMs(99));
    put(figures, "online_added_p50_ms", outcome.addedMs(alone, 50));
    put(figures, "online_added_p99_ms", outcome.addedMs(alone, 99));
    put(figures, "offline_of_ideal", outcome.offlineOfIdeal());
    put(figures, "idle_gpu_ms_per_request", outcome.lostMs());
    put(figures, "switches_per_s", outcome.switchesPerS());
    put(figures, "seat_cpu_percent", outcome.seatPercent());
    put(figures, "hooks_cpu_percent", outcome.monitorsPercent());
    put(figures, "programs_cpu_percent", outcome.programsPercent());
    put(figures, "others_cpu_percent", outcome.othersPercent());
    figures.put("requests", outcome.requests());
    figures.put("requests_beyond_p99", outcome.beyond(99));
    figures.put("requests_beyond_p999", outcome.beyond(99.9));
    figures.put("unfinished", outcome.unfinished());
    put(figures, "online_busy", outcome.onlineBusy());
    put(figures, "window_s", outcome.windowS());
    return figures;
  }

  private static void put(Map<String, Object> figures, String key, double value) {
    if (Double.isFinite(value)) {
      figures.put(key, rounded(value));
    }
  }

  private static double rounded(double value) {
    return Math.round(value * 10_000) / 10_000.0;
  }

  private double longestKernelMs() {
    return loads.stream()
        .flatMap(load -> load.outcomes().values().stream())
        .mapToDouble(Outcome::longestKernelMs)
        .max()
        .orElse(0);
  }

  /** How much two runs of the same kind differ, which tells how precise a ratio is. */
  private Map<String, Object> aloneAgain() {
    Map<String, Object> byLoad = new LinkedHashMap<>();
    for (Colocation.Load load : loads) {
      byLoad.put(
          Integer.toString(load.percent()), figures(load.aloneAgain(), load.of(Mode.ALONE, 0)));
    }
    return byLoad;
  }

  private List<String> notes() {
    List<String> notes = new ArrayList<>();
    notes.add(
        "modes.MODE.LOAD: for each key the worse of one and of three offline programs; both are"
            + " beside it. offline_of_ideal: offline work done, of the time that online work left."
            + " alone has no offline program, so 0. switches_per_s: turns that"
            + " the seat gave; how the device itself slices time is not counted");
    notes.add("alone_again: the same as alone, once more; its ratios say what a ratio is worth");
    for (Colocation.Load load : loads) {
      double others =
          load.outcomes().values().stream().mapToDouble(Outcome::othersPercent).max().orElse(0);
      if (others > NOISY_PERCENT) {
        notes.add(
            String.format(
                Locale.ROOT,
                "the machine was not quiet at load %d %%: others used up to %.0f %% of a core;"
                    + " unless our programs had priority (scheduling), latencies are not worth much",
                load.percent(),
                others));
      }
    }
    return notes;
  }

  /** {@return the bound that level 1 promises, in ms: 2 % more, and for long kernels one kernel} */
  static double targetMs(Outcome alone, Kernels kernels) {
    double kernelMs = kernels == Kernels.SHORT ? 0 : kernels.mostNs() / 1e6;
    return SLACK * alone.percentileMs(99) + kernelMs;
  }
}
