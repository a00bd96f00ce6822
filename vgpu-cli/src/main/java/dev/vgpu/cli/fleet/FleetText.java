package dev.vgpu.cli.fleet;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.console.TextTable;
import dev.vgpu.fleet.simulation.ReplayResult;
import dev.vgpu.fleet.simulation.Trace;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** The result of a fleet simulation, for people and for programs. */
final class FleetText {
  private static final double MICRO = 1000;

  private FleetText() {}

  static List<String> lines(Trace trace, List<ReplayResult> results) {
    List<String> lines = new ArrayList<>();
    int gpus = trace.nodes().stream().mapToInt(node -> node.gpus()).sum();
    lines.add(
        trace.name()
            + ": nodes="
            + trace.nodes().size()
            + " gpus="
            + gpus
            + " jobs="
            + trace.jobs().size());
    TextTable table =
        new TextTable(
            "policy",
            "allocated",
            "fragmented",
            "started",
            "gangs",
            "evicted",
            "refused",
            "never",
            "decision p50",
            "p99");
    TextTable waits = new TextTable("waiting", "class", "jobs", "mean", "p50", "p99", "longest");
    for (ReplayResult result : results) {
      table.row(
          result.policy(),
          text("%.2f %%", result.allocatedPercent()),
          text("%.2f %%", result.fragmentedPercent()),
          text("%d", result.started()),
          text("%d", result.gangs()),
          text("%d", result.evictions()),
          text("%d", result.refused()),
          text("%d", result.waiting()),
          text("%.0f µs", result.decisionTimes().quantile(0.5) / MICRO),
          text("%.0f µs", result.decisionTimes().quantile(0.99) / MICRO));
      for (PreemptionClass each : PreemptionClass.values()) {
        ReplayResult.Waits wait = result.waits().get(each);
        if (wait != null) {
          waits.row(
              result.policy(),
              each.name().toLowerCase(Locale.ROOT),
              text("%d", wait.jobs()),
              text("%.1f s", wait.mean()),
              text("%.1f s", wait.median()),
              text("%.1f s", wait.p99()),
              text("%.1f s", wait.most()));
        }
      }
    }
    lines.addAll(table.lines());
    lines.add("");
    lines.addAll(waits.lines());
    return lines;
  }

  static ObjectNode figures(ReplayResult result) {
    ObjectNode node = JsonNodeFactory.instance.objectNode();
    node.put("policy", result.policy());
    node.put("allocatedPercent", result.allocatedPercent());
    node.put("fragmentedPercent", result.fragmentedPercent());
    node.put("started", result.started());
    node.put("gangs", result.gangs());
    node.put("evictions", result.evictions());
    node.put("refused", result.refused());
    node.put("neverStarted", result.waiting());
    node.put("decisionMedianNs", result.decisionTimes().quantile(0.5));
    node.put("decisionP99Ns", result.decisionTimes().quantile(0.99));
    ObjectNode waits = node.putObject("waitingSeconds");
    for (PreemptionClass each : PreemptionClass.values()) {
      ReplayResult.Waits wait = result.waits().get(each);
      if (wait != null) {
        ObjectNode one = waits.putObject(each.name());
        one.put("jobs", wait.jobs());
        one.put("mean", wait.mean());
        one.put("median", wait.median());
        one.put("p99", wait.p99());
        one.put("most", wait.most());
      }
    }
    return node;
  }

  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
