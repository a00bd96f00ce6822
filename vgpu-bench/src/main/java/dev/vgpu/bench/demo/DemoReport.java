package dev.vgpu.bench.demo;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.demo.figure.BusyTime;
import dev.vgpu.bench.demo.figure.DemoResults;
import dev.vgpu.bench.demo.figure.DemoText;
import dev.vgpu.bench.demo.figure.Figures;
import dev.vgpu.bench.demo.figure.Latencies;
import dev.vgpu.bench.demo.figure.Phase;
import dev.vgpu.bench.demo.figure.PhaseResult;
import dev.vgpu.bench.demo.figure.SliceResult;
import dev.vgpu.bench.demo.figure.Span;
import dev.vgpu.bench.demo.process.ProcessesText;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The report's data: the figures, and the series for its plots. */
public final class DemoReport {
  private static final long SECOND_NS = 1_000_000_000;
  private static final long TIMELINE_NS = 4 * SECOND_NS;
  private static final double NS_PER_MS = 1e6;
  private static final int CURVE_POINTS_PER_DECADE = 16;

  private final Figures figures;
  private final ObjectNode data;

  private DemoReport(Figures figures, ObjectNode data) {
    this.figures = figures;
    this.data = data;
  }

  /**
   * {@return the report's data}
   *
   * @param results the measurements of the first part; null if it was not run
   * @param json the figures and the description of the run; is not changed
   */
  public static ObjectNode of(@Nullable DemoResults results, ObjectNode json) {
    ObjectNode data = json.objectNode();
    data.set("figures", json.deepCopy());
    if (json.has("processes")) {
      ArrayNode sentences = data.putArray("process_sentences");
      new ProcessesText(json.path("processes")).sentences().forEach(sentences::add);
    }
    if (results != null) {
      addFirstPart(results, data);
    }
    return data;
  }

  private static void addFirstPart(DemoResults results, ObjectNode data) {
    DemoReport report = new DemoReport(new Figures(results), data);
    new DemoText(results).sentences().forEach(data.putArray("sentences")::add);
    report.addCurves();
    report.addTimelines();
    report.addShares();
  }

  /** Adds latency by percentile, more densely towards 100. */
  private void addCurves() {
    for (Phase phase : List.of(Phase.ONLINE_ALONE, Phase.UNCONTROLLED, Phase.VGPU)) {
      Latencies latencies = figures.results().of(phase).latencies();
      ObjectNode curve = data.withArray("curves").addObject();
      curve.put("phase", phase.id()).put("title", phase.title());
      ArrayNode points = curve.putArray("points");
      for (int i = 0; slower(i) * latencies.count() >= 1; i++) {
        addPoint(points, slower(i), latencies.percentileMs(100 * (1 - slower(i))));
      }
    }
  }

  private static double slower(int point) {
    return Math.pow(10, -point / (double) CURVE_POINTS_PER_DECADE);
  }

  private static void addPoint(ArrayNode points, double slower, double milliseconds) {
    points.addArray().add(slower).add(Math.round(milliseconds * 1000) / 1000.0);
  }

  /** Adds which tenant used the device, for a few seconds of each phase. */
  private void addTimelines() {
    for (Phase phase : Phase.values()) {
      SliceResult slice = figures.results().of(phase).slices().get(0);
      long fromNs = timelineStart(slice);
      long toNs = fromNs + Math.min(TIMELINE_NS, slice.lengthNs());
      ObjectNode timeline = data.withArray("timelines").addObject();
      timeline.put("phase", phase.id()).put("title", phase.title());
      timeline.put("from_s", fromNs / (double) SECOND_NS);
      addTenants(timeline, slice);
      ArrayNode spans = timeline.putArray("spans");
      for (Span span : slice.spans()) {
        if (span.endNs() > fromNs && span.startNs() < toNs) {
          spans
              .addArray()
              .add(span.tenant())
              .add(milliseconds(Math.max(span.startNs(), fromNs) - fromNs))
              .add(milliseconds(Math.min(span.endNs(), toNs) - fromNs));
        }
      }
    }
  }

  private long timelineStart(SliceResult slice) {
    long wantedNs =
        slice.phase() == Phase.SIX_MODELS
            ? figures.burstFromNs() - SECOND_NS
            : (slice.lengthNs() - TIMELINE_NS) / 2;
    return Math.max(0, Math.min(wantedNs, slice.lengthNs() - TIMELINE_NS));
  }

  private static double milliseconds(long ns) {
    return Math.round(ns / NS_PER_MS * 1000) / 1000.0;
  }

  private static void addTenants(ObjectNode json, SliceResult slice) {
    ArrayNode tenants = json.putArray("tenants");
    slice
        .tenants()
        .forEach(
            tenant ->
                tenants.addObject().put("name", tenant.name()).put("percent", tenant.percent()));
  }

  /**
   * Adds each tenant's part of the time that the device was used: per second, and per half second
   * for the six models.
   */
  private void addShares() {
    for (Phase phase : List.of(Phase.FIXED_SHARE, Phase.BURST_SHARE, Phase.SIX_MODELS)) {
      PhaseResult result = figures.results().of(phase);
      ObjectNode shares = data.withArray("shares").addObject();
      shares.put("phase", phase.id()).put("title", phase.title());
      SliceResult slice = result.slices().get(0);
      addTenants(shares, slice);
      if (phase == Phase.SIX_MODELS) {
        shares.put("burst_from_s", figures.burstFromNs() / (double) SECOND_NS);
        shares.put("burst_to_s", figures.burstToNs() / (double) SECOND_NS);
      }
      addSeries(shares, slice, phase == Phase.SIX_MODELS ? SECOND_NS / 2 : SECOND_NS);
    }
  }

  private static void addSeries(ObjectNode shares, SliceResult slice, long binNs) {
    shares.put("bin_s", binNs / (double) SECOND_NS);
    List<BusyTime> busy = new ArrayList<>();
    for (int tenant = 0; tenant < slice.tenants().size(); tenant++) {
      busy.add(BusyTime.of(slice.spans(), tenant));
    }
    for (BusyTime tenant : busy) {
      ArrayNode series = shares.withArray("series").addArray();
      for (long fromNs = 0; fromNs + binNs <= slice.lengthNs(); fromNs += binNs) {
        series.add(Math.round(tenant.between(fromNs, fromNs + binNs) * 1000.0 / binNs) / 10.0);
      }
    }
  }
}
