package dev.vgpu.bench.demo.figure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.demo.DemoReport;
import dev.vgpu.bench.demo.Slice;
import dev.vgpu.bench.trace.CostCurve;
import dev.vgpu.bench.trace.Replay;
import dev.vgpu.bench.trace.Schedule;
import dev.vgpu.cli.machine.ProcessorTime;
import dev.vgpu.simulation.trace.Trace;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class DemoResultsTest {
  private static final long SECOND_NS = 1_000_000_000;
  private static final long MS_NS = 1_000_000;
  private static final CostCurve COSTS = new CostCurve(Map.of(128, 10 * MS_NS));

  @Test
  void figuresAreThoseOfTheDefinition() {
    Figures figures = new Figures(results(11));
    assertThat(figures.p99Ratio(Phase.VGPU)).isCloseTo(1.1, within(0.01));
    assertThat(figures.offlinePerSecond(Phase.OFFLINE_ALONE)).isEqualTo(1_000);
    // The online requests alone use a quarter of the device.
    assertThat(figures.offlineRoomPerSecond()).isCloseTo(750, within(1e-6));
    assertThat(figures.offlineKept(Phase.VGPU)).isCloseTo(600 / 750.0, within(1e-6));
    assertThat(figures.pair(Phase.FIXED_SHARE).large()).isCloseTo(75, within(1e-6));
    assertThat(figures.worstSharePoints()).isCloseTo(0, within(0.2));
    assertThat(figures.failedRequests()).isZero();
  }

  @Test
  void jsonHoldsTheAgreedNumbers() {
    ObjectNode json = DemoJson.of(results(11));
    for (String name :
        List.of(
            "online_alone_p99_ms",
            "online_uncontrolled_p99_ms",
            "online_vgpu_p99_ms",
            "offline_alone_per_s",
            "offline_uncontrolled_per_s",
            "offline_vgpu_per_s",
            "utilisation",
            "share_75",
            "share_25")) {
      assertThat(json.path(name).isNumber()).as(name).isTrue();
    }
    assertThat(json.path("share_75").asDouble()).isEqualTo(75);
    assertThat(json.path("six_models")).hasSize(6);
  }

  @Test
  void keptTargetsAreSaidToBeMet() {
    assertThat(Target.of(new Figures(results(10)))).allMatch(Target::isMet);
    assertThat(new DemoText(results(10)).sentences())
        .hasSize(4)
        .noneMatch(sentence -> sentence.contains("MISSED"));
  }

  @Test
  void missedTargetIsSaidPlainly() {
    assertThat(new DemoText(results(30)).sentences().get(0)).contains("MISSED");
  }

  @Test
  void failedRequestsAreSaid() {
    DemoResults results = results(10, 503);
    assertThat(new DemoText(results).sentences())
        .last()
        .asString()
        .contains("FAILED (status 503: 300)");
    assertThat(DemoJson.of(results).path("failed_requests").asLong()).isEqualTo(300);
  }

  @Test
  void busyMachineIsSaid() {
    DemoResults results = results(10, 200, new Disturbance(20, 5));
    assertThat(new DemoText(results).sentences()).last().asString().contains("busy", "20 %", "5 %");
    assertThat(DemoJson.of(results).path("machine_was_busy").asBoolean()).isTrue();
  }

  @Test
  void disturbanceIsWhatOthersTook() {
    ProcessorTime start = new ProcessorTime(100, 10, 1_000);
    ProcessorTime end = new ProcessorTime(160, 15, 1_100);
    Disturbance disturbance =
        new Disturbance.Reading(Optional.of(end), Duration.ofSeconds(45))
            .since(new Disturbance.Reading(Optional.of(start), Duration.ofSeconds(5)));
    assertThat(disturbance).isEqualTo(new Disturbance(20, 5));
  }

  @Test
  void tableNamesEveryPhaseAndModel() {
    List<String> lines = new DemoText(results(10)).lines();
    // The interpretation is in the last lines, which are wrapped to the terminal's width.
    assertThat(lines.subList(0, lines.lastIndexOf(""))).allMatch(line -> line.length() <= 80);
    String text = String.join("\n", lines);
    for (Phase phase : Phase.values()) {
      if (phase != Phase.SIX_MODELS) {
        assertThat(text).contains(phase.title());
      }
    }
    SixModels.MODELS.forEach(model -> assertThat(text).contains(model.name()));
  }

  @Test
  void reportDataHoldsEveryPlot() {
    DemoResults results = results(10);
    ObjectNode data = DemoReport.of(results, DemoJson.of(results));
    assertThat(data.path("curves")).hasSize(3);
    assertThat(data.path("timelines")).hasSize(Phase.values().length);
    assertThat(data.path("shares")).hasSize(3);
    assertThat(data.path("shares").path(0).path("series")).hasSize(2);
    assertThat(data.path("curves").path(0).path("points").size()).isGreaterThan(10);
  }

  @Test
  void spansOutsideTheWindowAreCutOff() {
    PhaseSnapshot before = new PhaseSnapshot(100, List.of(tenant("a", 5)), List.of());
    PhaseSnapshot after =
        new PhaseSnapshot(
            200,
            List.of(tenant("a", 12)),
            List.of(new Span(0, 10, 50), new Span(0, 90, 110), new Span(0, 195, 200)));
    SliceResult slice = SliceResult.between(Phase.OFFLINE_ALONE, before, after, 0, List.of());
    assertThat(slice.lengthNs()).isEqualTo(100);
    assertThat(slice.spans()).containsExactly(new Span(0, 0, 10), new Span(0, 95, 100));
    assertThat(slice.tenants().get(0).items()).isEqualTo(7);
  }

  @Test
  void planReplaysTheSameRequestsInEachComparedPhase() {
    Timing timing = Timing.of(DemoOptions.Length.FULL);
    Schedule online = Replay.of(trace(), COSTS, 0.25, timing.onlineNs(), "/embed").schedule();
    List<Slice> plan = Slice.plan(timing, online, new Schedule(List.of(), 1));
    for (Phase phase : List.of(Phase.ONLINE_ALONE, Phase.UNCONTROLLED, Phase.VGPU)) {
      assertThat(plan.stream().filter(slice -> slice.phase() == phase).map(Slice::schedule))
          .containsExactlyElementsOf(online.slices(timing.rounds()));
    }
    assertThat(plan.stream().map(Slice::phase).distinct()).hasSize(Phase.values().length);
    assertThat(timing.totalSeconds()).isLessThan(120);
  }

  @Test
  void burstGoesToTwoOfSixModels() {
    Schedule schedule = SixModels.schedule(COSTS, 12 * SECOND_NS, 3 * SECOND_NS, 7 * SECOND_NS);
    for (SixModels.Model model : SixModels.MODELS) {
      double burstNs = costNs(schedule, model.path(), 3 * SECOND_NS, 7 * SECOND_NS);
      double calmNs = costNs(schedule, model.path(), 8 * SECOND_NS, 12 * SECOND_NS);
      assertThat(calmNs / (4 * SECOND_NS)).isBetween(0.005, 0.12);
      assertThat(burstNs > 5 * calmNs).isEqualTo(model.hasBurst());
    }
    assertThat(SixModels.MODELS.stream().mapToInt(SixModels.Model::percent).sum()).isEqualTo(100);
  }

  private static double costNs(Schedule schedule, String path, long fromNs, long toNs) {
    return schedule.requests().stream()
        .filter(request -> request.path().equals(path))
        .filter(request -> request.arrivalNs() >= fromNs && request.arrivalNs() < toNs)
        .mapToDouble(request -> COSTS.costNs(128 * request.texts().size()))
        .sum();
  }

  private static DemoResults results(int vgpuMs) {
    return results(vgpuMs, 200);
  }

  private static DemoResults results(int vgpuMs, int vgpuStatus) {
    return results(vgpuMs, vgpuStatus, Disturbance.NONE);
  }

  private static DemoResults results(int vgpuMs, int vgpuStatus, Disturbance disturbance) {
    List<SliceResult> slices = new ArrayList<>();
    for (Phase phase : Phase.values()) {
      switch (phase) {
        case ONLINE_ALONE -> slices.add(online(phase, 10, 200, 0));
        case OFFLINE_ALONE -> slices.add(online(phase, 10, 200, 10_000));
        case UNCONTROLLED -> slices.add(online(phase, 30, 200, 5_000));
        case VGPU -> slices.add(online(phase, vgpuMs, vgpuStatus, 6_000));
        case FIXED_SHARE, BURST_SHARE -> slices.add(pair(phase));
        case SIX_MODELS -> slices.add(six());
      }
    }
    Timing timing = Timing.of(DemoOptions.Length.FULL);
    Replay replay = Replay.of(trace(), COSTS, 0.25, timing.onlineNs(), "/embed");
    return new DemoResults(25, replay, timing, disturbance, slices);
  }

  private static Trace trace() {
    return Trace.Builtin.CONV.load();
  }

  private static SliceResult online(Phase phase, int latencyMs, int status, long items) {
    List<RequestResult> results = new ArrayList<>();
    List<Span> spans = new ArrayList<>();
    for (long i = 0; i < 300; i++) {
      long atNs = i * 30 * MS_NS;
      results.add(new RequestResult(atNs, atNs, atNs + latencyMs * MS_NS, status, "/embed"));
    }
    for (long i = 0; i < 100; i++) {
      spans.add(new Span(0, i * 100 * MS_NS, i * 100 * MS_NS + 25 * MS_NS));
    }
    return new SliceResult(
        phase,
        10 * SECOND_NS,
        0,
        List.of(tenant("online", 300), tenant("corpus", items)),
        spans,
        results);
  }

  private static SliceResult pair(Phase phase) {
    List<Span> spans = new ArrayList<>();
    for (long i = 0; i < 2_000; i++) {
      spans.add(new Span(0, i * 4 * MS_NS, i * 4 * MS_NS + 3 * MS_NS));
      spans.add(new Span(1, i * 4 * MS_NS + 3 * MS_NS, i * 4 * MS_NS + 4 * MS_NS));
    }
    return new SliceResult(
        phase,
        8 * SECOND_NS,
        0,
        List.of(tenant("offline-75", 75), tenant("offline-25", 25)),
        spans,
        List.of());
  }

  private static SliceResult six() {
    List<PhaseSnapshot.Tenant> tenants =
        SixModels.MODELS.stream().map(model -> tenant(model.name(), 1)).toList();
    return new SliceResult(
        Phase.SIX_MODELS, 12 * SECOND_NS, 0, tenants, List.of(new Span(0, 0, 5)), List.of());
  }

  private static PhaseSnapshot.Tenant tenant(String name, long items) {
    return new PhaseSnapshot.Tenant(name, 0, items, items, 0, 1, 2);
  }
}
