package dev.vgpu.cli.simulation;

import dev.vgpu.cli.console.TextTable;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.LatencyHistogram;
import dev.vgpu.simulation.Mix;
import dev.vgpu.simulation.MixResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A simulation's result for people. Immutable. */
public final class SimulationText {
  private static final int TIMELINE_WIDTH = 72;
  private static final String BARS = " ▁▂▃▄▅▆▇█";

  private final String title;
  private final MixResult result;
  private final long tookNs;

  /**
   * Creates the text.
   *
   * @param title the mix's title for people
   * @param result the simulation's result
   * @param tookNs the wall-clock time of the simulation
   */
  public SimulationText(String title, MixResult result, long tookNs) {
    this.title = title;
    this.result = result;
    this.tookNs = tookNs;
  }

  /** {@return its lines} */
  public List<String> lines() {
    List<String> lines = new ArrayList<>();
    Mix mix = result.mix();
    lines.add(
        title
            + ": "
            + Times.text(mix.durationNs())
            + (mix.warmUpNs() > 0
                ? " (the first " + Times.text(mix.warmUpNs()) + " not counted)"
                : "")
            + ", seed "
            + mix.seed());
    for (MixResult.OfGpu gpu : result.gpus()) {
      double seconds = result.countedSeconds();
      lines.add(
          String.format(
              Locale.ROOT,
              "%s: busy %.1f %%, lost between turns %.1f %%, %.1f turns/s, %.1f switches/s,"
                  + " %.1f preemptions/s",
              gpu.name(),
              gpu.busyNs() / seconds / 1e7,
              gpu.lostNs() / seconds / 1e7,
              gpu.turns() / seconds,
              gpu.switches() / seconds,
              gpu.preemptions() / seconds));
    }
    lines.add("");
    lines.addAll(shares().lines());
    lines.add("");
    lines.addAll(latencies().lines());
    lines.add("");
    addTimeline(lines);
    lines.add("");
    lines.add(
        String.format(
            Locale.ROOT,
            "simulated %s in %s: %,.0f times faster than real time",
            Times.text(mix.durationNs()),
            Times.text(tookNs / 1_000_000 * 1_000_000),
            SimulationJson.timesFaster(result, tookNs)));
    return lines;
  }

  private TextTable shares() {
    TextTable table =
        new TextTable(
            "tenant",
            "class",
            "policy",
            "held %",
            "entitled %",
            "worst 1 s",
            "GPU s",
            "kernels/s",
            "turns",
            "preempted");
    for (int i = 0; i < result.tenants().size(); i++) {
      MixResult.OfTenant tenant = result.tenants().get(i);
      Mix.Member member = result.mix().tenants().get(i);
      double seconds = Math.max(1e-9, tenant.presentNs() / 1e9);
      table.row(
          tenant.name(),
          member.request().preemptionClass().name().toLowerCase(Locale.ROOT),
          policy(member),
          number(tenant.heldPercent(), 2),
          number(tenant.entitledPercent(), 2),
          tenant.worstWindowAtNs() < 0 ? "–" : number(tenant.worstWindow(), 2),
          number(tenant.usedNs() / 1e9, 3),
          number(tenant.kernels() / seconds, 1),
          Long.toString(tenant.turns()),
          Long.toString(tenant.preemptions()));
    }
    return table;
  }

  private static String policy(Mix.Member member) {
    SharePolicy policy = member.request().policy();
    return switch (policy) {
      case BEST_EFFORT -> "best-effort";
      case FIXED_SHARE -> "fixed " + member.request().computePercent().orElse(0);
      case BURST_SHARE -> "burst " + member.request().computePercent().orElse(0);
    };
  }

  private TextTable latencies() {
    TextTable table =
        new TextTable(
            "tenant",
            "requests",
            "answered",
            "answered/s",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "p99.9 ms",
            "max ms");
    for (MixResult.OfTenant tenant : result.tenants()) {
      LatencyHistogram latencies = tenant.latencies();
      double seconds = Math.max(1e-9, tenant.presentNs() / 1e9);
      table.row(
          tenant.name(),
          Long.toString(tenant.requests()),
          Long.toString(tenant.answered()),
          number(tenant.answered() / seconds, 1),
          ms(latencies.percentileNs(50)),
          ms(latencies.percentileNs(95)),
          ms(latencies.percentileNs(99)),
          ms(latencies.percentileNs(99.9)),
          ms(latencies.largestNs()));
    }
    return table;
  }

  private void addTimeline(List<String> lines) {
    int points = result.tenants().stream().mapToInt(t -> t.series().size()).max().orElse(0);
    if (points == 0) {
      lines.add("(too short for a timeline)");
      return;
    }
    int columns = Math.min(TIMELINE_WIDTH, points);
    long columnNs = (result.mix().durationNs() - result.mix().warmUpNs()) / columns;
    lines.add(
        "part of the GPU held, a column for " + Times.text(columnNs) + ", a full one is 100 %");
    int width = result.tenants().stream().mapToInt(t -> t.name().length()).max().orElse(0);
    for (MixResult.OfTenant tenant : result.tenants()) {
      StringBuilder line = new StringBuilder(tenant.name());
      line.append(" ".repeat(width - tenant.name().length() + 2));
      for (int column = 0; column < columns; column++) {
        int from = column * tenant.series().size() / columns;
        int to = Math.max(from + 1, (column + 1) * tenant.series().size() / columns);
        double held =
            tenant.series().subList(from, to).stream()
                .mapToDouble(Double::doubleValue)
                .average()
                .orElse(0);
        int height = held < 0.5 ? 0 : (int) Math.min(8, 1 + held / 100 * 8);
        line.append(BARS.charAt(height));
      }
      lines.add(line.toString().stripTrailing());
    }
  }

  private static String ms(long ns) {
    return number(ns / 1e6, ns < 100_000_000 ? 2 : 0);
  }

  private static String number(double value, int digits) {
    return String.format(Locale.ROOT, "%." + digits + "f", value);
  }
}
