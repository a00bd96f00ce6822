package dev.vgpu.cli.simulation;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.simulation.LatencyHistogram;
import dev.vgpu.simulation.Mix;
import dev.vgpu.simulation.MixResult;
import java.util.Locale;

/** A simulation's result as data. */
public final class SimulationJson {
  private static final double[] PERCENTS = {
    1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 99.5, 99.9, 99.95, 99.99
  };
  private static final long FEW = 2;

  private SimulationJson() {}

  /**
   * {@return the figures}
   *
   * @param title the mix's title for people
   * @param result the simulation's result
   * @param tookNs the wall-clock time of the simulation
   */
  public static ObjectNode of(String title, MixResult result, long tookNs) {
    ObjectNode figures = JsonNodeFactory.instance.objectNode();
    Mix mix = result.mix();
    figures.put("name", title);
    figures.put("seed", mix.seed());
    figures.put("duration_s", mix.durationNs() / 1e9);
    figures.put("warm_up_s", mix.warmUpNs() / 1e9);
    figures.put("took_s", rounded(tookNs / 1e9, 6));
    figures.put("times_faster", rounded(timesFaster(result, tookNs), 1));
    ArrayNode gpus = figures.putArray("gpus");
    for (int i = 0; i < result.gpus().size(); i++) {
      addGpu(gpus.addObject(), result, i);
    }
    ArrayNode tenants = figures.putArray("tenants");
    for (int i = 0; i < result.tenants().size(); i++) {
      addTenant(tenants.addObject(), result, i);
    }
    return figures;
  }

  /** {@return the ratio of virtual time to wall-clock time} */
  static double timesFaster(MixResult result, long tookNs) {
    return result.mix().durationNs() / (double) tookNs;
  }

  private static void addGpu(ObjectNode node, MixResult result, int number) {
    MixResult.OfGpu gpu = result.gpus().get(number);
    double seconds = result.countedSeconds();
    node.put("name", gpu.name());
    node.put("sharing", result.mix().gpus().get(number).settings().sharing().name());
    node.put("busy_percent", rounded(gpu.busyNs() / seconds / 1e7, 3));
    node.put("lost_percent", rounded(gpu.lostNs() / seconds / 1e7, 3));
    node.put("turns_per_s", rounded(gpu.turns() / seconds, 2));
    node.put("switches_per_s", rounded(gpu.switches() / seconds, 2));
    node.put("preemptions_per_s", rounded(gpu.preemptions() / seconds, 2));
    node.put("steps_per_s", rounded(gpu.steps() / seconds, 2));
  }

  private static void addTenant(ObjectNode node, MixResult result, int number) {
    Mix.Member member = result.mix().tenants().get(number);
    MixResult.OfTenant tenant = result.tenants().get(number);
    double seconds = Math.max(1e-9, tenant.presentNs() / 1e9);
    double gpuSeconds = tenant.usedNs() / 1e9;
    node.put("name", tenant.name());
    node.put("gpu", result.mix().gpus().get(member.gpu()).name());
    node.put("policy", member.request().policy().name());
    node.put("class", member.request().preemptionClass().name());
    if (member.request().computePercent().isPresent()) {
      node.put("share_percent", member.request().computePercent().getAsInt());
    } else {
      node.putNull("share_percent");
    }
    node.put("enforcement", member.model().tellsInLumps() ? "hook" : "jvm");
    node.put("present_s", rounded(tenant.presentNs() / 1e9, 3));
    node.put("held_percent", rounded(tenant.heldPercent(), 3));
    node.put("entitled_percent", rounded(tenant.entitledPercent(), 3));
    if (tenant.worstWindowAtNs() < 0) {
      node.putNull("worst_1s_points");
      node.putNull("worst_1s_at_s");
    } else {
      node.put("worst_1s_points", rounded(tenant.worstWindow(), 3));
      node.put("worst_1s_at_s", rounded(tenant.worstWindowAtNs() / 1e9, 3));
    }
    node.put("gpu_s", rounded(gpuSeconds, 6));
    node.put("measured_gpu_s", rounded(tenant.measuredNs() / 1e9, 6));
    node.put("requests", tenant.requests());
    node.put("answered", tenant.answered());
    node.put("kernels", tenant.kernels());
    node.put("requests_per_s", rounded(tenant.answered() / seconds, 3));
    node.put("kernels_per_s", rounded(tenant.kernels() / seconds, 3));
    node.put("kernels_per_gpu_s", gpuSeconds == 0 ? 0 : rounded(tenant.kernels() / gpuSeconds, 3));
    node.put("turns", tenant.turns());
    node.put("preemptions", tenant.preemptions());
    addLatency(node.putObject("latency_ms"), tenant.latencies());
  }

  private static void addLatency(ObjectNode node, LatencyHistogram latencies) {
    if (latencies.count() == 0) {
      return;
    }
    node.put("mean", ms(latencies.meanNs()));
    node.put("p50", ms((double) latencies.percentileNs(50)));
    node.put("p90", ms((double) latencies.percentileNs(90)));
    node.put("p95", ms((double) latencies.percentileNs(95)));
    node.put("p99", ms((double) latencies.percentileNs(99)));
    node.put("p99_9", ms((double) latencies.percentileNs(99.9)));
    node.put("max", ms((double) latencies.largestNs()));
  }

  private static double ms(double ns) {
    return rounded(ns / 1e6, 4);
  }

  /**
   * {@return the report's data}
   *
   * @param figures the figures
   * @param result the simulation's result
   */
  public static ObjectNode report(ObjectNode figures, MixResult result) {
    ObjectNode data = JsonNodeFactory.instance.objectNode();
    data.set("figures", figures.deepCopy());
    data.put("bin_s", result.binNs() / 1e9);
    data.put("from_s", result.mix().warmUpNs() / 1e9);
    ArrayNode series = data.putArray("series");
    ArrayNode curves = data.putArray("curves");
    for (int i = 0; i < result.tenants().size(); i++) {
      MixResult.OfTenant tenant = result.tenants().get(i);
      ObjectNode one = series.addObject();
      one.put("tenant", i);
      ArrayNode held = one.putArray("held");
      tenant.series().forEach(value -> held.add(rounded(value, 2)));
      ArrayNode entitled = one.putArray("entitled");
      tenant.entitledSeries().forEach(value -> entitled.add(rounded(value, 2)));
      addCurve(curves, i, tenant.latencies());
    }
    ArrayNode timelines = data.putArray("timelines");
    for (MixResult.OfGpu gpu : result.gpus()) {
      ObjectNode timeline = timelines.addObject();
      timeline.put("gpu", gpu.name());
      timeline.put("from_ms", gpu.spansFromNs() / 1e6);
      ArrayNode spans = timeline.putArray("spans");
      for (MixResult.Span span : gpu.spans()) {
        spans
            .addArray()
            .add(span.tenant())
            .add(rounded(span.fromNs() / 1e6, 3))
            .add(rounded(span.toNs() / 1e6, 3));
      }
    }
    return data;
  }

  private static void addCurve(ArrayNode curves, int tenant, LatencyHistogram latencies) {
    if (latencies.count() < FEW) {
      return;
    }
    ObjectNode curve = curves.addObject();
    curve.put("tenant", tenant);
    ArrayNode points = curve.putArray("points");
    for (double percent : PERCENTS) {
      if (latencies.count() * (100 - percent) >= 100 || percent <= 50) {
        points
            .addArray()
            .add(rounded(1 - percent / 100, 6))
            .add(ms((double) latencies.percentileNs(percent)));
      }
    }
  }

  private static double rounded(double number, int digits) {
    if (!Double.isFinite(number)) {
      return 0;
    }
    return Double.parseDouble(String.format(Locale.ROOT, "%." + digits + "f", number));
  }
}
