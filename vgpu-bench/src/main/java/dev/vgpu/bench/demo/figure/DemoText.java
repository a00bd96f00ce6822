package dev.vgpu.bench.demo.figure;

import dev.vgpu.cli.console.TextTable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** The demo's results for a terminal: tables, then their interpretation. */
public final class DemoText {
  private static final String NONE = "-";
  private static final long BYTES_PER_MIB = 1L << 20;

  private final Figures figures;

  /**
   * Creates the text.
   *
   * @param results the measurements
   */
  public DemoText(DemoResults results) {
    this.figures = new Figures(results);
  }

  /** {@return the tables, then the sentences} */
  public List<String> lines() {
    List<String> lines = new ArrayList<>();
    lines.addAll(onlineOffline().lines());
    lines.add("");
    lines.addAll(pairs().lines());
    lines.add("");
    lines.addAll(sixModels().lines());
    lines.add("");
    lines.addAll(sentences());
    return lines;
  }

  /** {@return sentences that interpret the figures} */
  public List<String> sentences() {
    List<String> sentences = new ArrayList<>();
    Target.of(figures).forEach(target -> sentences.add(target.sentence()));
    sentences.add(sixModelsSentence());
    Disturbance disturbance = figures.results().disturbance();
    if (disturbance.isLarge()) {
      sentences.add(
          format(
              "BUT this machine was busy: meanwhile other programs used %.0f %% of its processors, and"
                  + " its hypervisor withheld %.0f %%. Run the demo again when it is quiet.",
              disturbance.otherPercent(), disturbance.stolenPercent()));
    }
    long failed = figures.failedRequests();
    if (failed > 0) {
      sentences.add(
          failed
              + (failed == 1 ? " request" : " requests")
              + " FAILED ("
              + figures.failures().entrySet().stream()
                  .map(entry -> status(entry.getKey()) + ": " + entry.getValue())
                  .collect(Collectors.joining(", "))
              + ") and are not among the times above. Run again with --keep-logs to see why.");
    }
    return sentences;
  }

  private String sixModelsSentence() {
    List<Figures.ModelFigures> models = figures.sixModels();
    String held =
        models.stream()
            .filter(model -> model.model().hasBurst())
            .map(
                model ->
                    format(
                        "%s held %.0f %% (its share is %d %%)",
                        model.model().name(), model.heldInBurst(), model.model().percent()))
            .collect(Collectors.joining(" and "));
    double others =
        models.stream()
            .filter(model -> !model.model().hasBurst())
            .mapToDouble(model -> model.latencies().percentileMs(99))
            .max()
            .orElse(Double.NaN);
    return "Of six models in one JVM, two got a burst: while it lasted, "
        + held
        + " of the time that the device was used; the p99 of the four others was "
        + ms(others)
        + " ms or less.";
  }

  private TextTable onlineOffline() {
    TextTable table =
        new TextTable(
            "online and offline",
            "p50 ms",
            "p99 ms",
            "max ms",
            "failed",
            "offline/s",
            "device used");
    for (Phase phase :
        List.of(Phase.ONLINE_ALONE, Phase.OFFLINE_ALONE, Phase.UNCONTROLLED, Phase.VGPU)) {
      boolean online = phase != Phase.OFFLINE_ALONE;
      boolean offline = phase != Phase.ONLINE_ALONE;
      Latencies latencies = figures.results().of(phase).latencies();
      table.row(
          phase.title(),
          online ? ms(latencies.percentileMs(50)) : NONE,
          online ? ms(latencies.percentileMs(99)) : NONE,
          online ? ms(latencies.maxMs()) : NONE,
          online ? Long.toString(latencies.failed()) : NONE,
          offline ? format("%.0f", figures.offlinePerSecond(phase)) : NONE,
          format("%.0f %%", figures.utilisationPercent(phase)));
    }
    return table;
  }

  private TextTable pairs() {
    TextTable table =
        new TextTable(
            "two offline tenants", "asked", "held", "worst over 5 s", "texts/s", "device used");
    for (Phase phase : List.of(Phase.FIXED_SHARE, Phase.BURST_SHARE)) {
      Figures.Pair pair = figures.pair(phase);
      table.row(
          phase.title(),
          "75 / 25",
          format("%.1f / %.1f", pair.large(), pair.small()),
          format("%.1f / %.1f", pair.worstLarge(), 100 - pair.worstLarge()),
          format("%.0f", pair.itemsPerSecond()),
          format("%.0f %%", pair.utilisation()));
    }
    return table;
  }

  private TextTable sixModels() {
    TextTable table =
        new TextTable(
            "six models, one JVM",
            "asked",
            "in burst",
            "requests",
            "p99 ms",
            "failed",
            "peak/quota MiB");
    for (Figures.ModelFigures model : figures.sixModels()) {
      table.row(
          model.model().name() + (model.model().hasBurst() ? " (burst)" : ""),
          model.model().percent() + " %",
          format("%.1f %%", model.heldInBurst()),
          Long.toString(model.latencies().count() + model.latencies().failed()),
          ms(model.latencies().percentileMs(99)),
          Long.toString(model.latencies().failed()),
          format(
              "%d/%d",
              (model.memoryPeakBytes() + BYTES_PER_MIB - 1) / BYTES_PER_MIB,
              model.quotaBytes() / BYTES_PER_MIB));
    }
    return table;
  }

  private static String status(int code) {
    return code == 0 ? "no answer" : "status " + code;
  }

  private static String ms(double milliseconds) {
    return Double.isNaN(milliseconds) ? NONE : format("%.1f", milliseconds);
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
