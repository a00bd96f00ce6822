package dev.vgpu.simulation;

import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.US;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;

import dev.vgpu.GpuSettings;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.List;
import org.junit.jupiter.api.Test;

class SimulationTest {
  private static final Arrivals ENDLESS = new Arrivals.ClosedLoop(1, 0);
  private static final long FOREVER = Long.MAX_VALUE;

  private static RequestShape kernels(int count, long ns) {
    return new RequestShape(count, count, new KernelTime.Fixed(ns), 1_000_000, 20 * US);
  }

  private static Mix.Member tenant(
      String name,
      SharePolicy policy,
      int percent,
      PreemptionClass cls,
      GateModel model,
      Arrivals arrivals,
      RequestShape shape) {
    return new Mix.Member(
        name, 0, VirtualNode.request(policy, percent, cls), model, arrivals, shape, 0, FOREVER);
  }

  private static Mix.Member offline(String name, int percent, GateModel model, long kernelNs) {
    return tenant(
        name,
        SharePolicy.BURST_SHARE,
        percent,
        PreemptionClass.OFFLINE,
        model,
        ENDLESS,
        kernels(1, kernelNs));
  }

  private static Mix.Member chat(GateModel model, double perSecond) {
    return tenant(
        "chat",
        SharePolicy.BEST_EFFORT,
        0,
        PreemptionClass.ONLINE,
        model,
        new Arrivals.Poisson(perSecond),
        kernels(10, 400 * US));
  }

  private static MixResult run(long durationNs, long seed, Mix.Member... tenants) {
    GpuSettings settings = GpuSettings.defaults();
    return Simulation.run(
        new Mix(
            List.of(new Mix.Gpu("gpu0", settings, VirtualNode.SLICE_NS, VirtualNode.CHANGE_NS)),
            List.of(tenants),
            durationNs,
            0,
            seed),
        passedNs -> {});
  }

  @Test
  void theSameSeedGivesTheSameResult() {
    Mix.Member[] tenants = {
      chat(GateModel.processes(), 30),
      offline("train", 60, GateModel.processes(), MS),
      offline("other", 40, GateModel.calls(2 * MS), 3 * MS)
    };
    String first = shown(run(20 * S, 7, tenants));
    assertThat(shown(run(20 * S, 7, tenants))).isEqualTo(first);
    assertThat(shown(run(20 * S, 8, tenants))).isNotEqualTo(first);
  }

  private static String shown(MixResult result) {
    StringBuilder text = new StringBuilder(result.gpus().toString());
    for (MixResult.OfTenant tenant : result.tenants()) {
      text.append(tenant.series())
          .append(tenant.usedNs())
          .append(' ')
          .append(tenant.latencies().percentileNs(99))
          .append(' ')
          .append(tenant.latencies().meanNs());
    }
    return text.toString();
  }

  @Test
  void anotherTenantDoesNotChangeWhatChanceBringsToOne() {
    long alone = run(20 * S, 7, chat(GateModel.processes(), 30)).tenants().get(0).requests();
    MixResult beside =
        run(
            20 * S,
            7,
            offline("train", 60, GateModel.processes(), MS),
            chat(GateModel.processes(), 30));
    assertThat(beside.tenants().get(1).requests()).isEqualTo(alone);
  }

  @Test
  void sharesAreHeldByProcessesAndByCalls() {
    for (GateModel model : List.of(GateModel.processes(), GateModel.calls(-1))) {
      MixResult result =
          run(60 * S, 1, offline("large", 75, model, MS), offline("small", 25, model, MS));
      for (MixResult.OfTenant tenant : result.tenants()) {
        assertThat(tenant.heldPercent())
            .as("%s", tenant.name())
            .isCloseTo(tenant.entitledPercent(), offset(0.2));
        assertThat(tenant.worstWindow()).isLessThan(8);
      }
      assertThat(result.tenants().get(0).heldPercent()).isCloseTo(75, offset(0.3));
      assertThat(result.gpus().get(0).busyNs() + result.gpus().get(0).lostNs())
          .isCloseTo(60e9, offset(1e6));
    }
  }

  /**
   * Between the turns of urgent tenants no urgent work runs, and an offline kernel that begins
   * there would share the GPU with the next turn.
   */
  @Test
  void offlineWorkTakesNothingFromUrgentTenantsThatWaitForTheirTurn() {
    MixResult result =
        run(
            20 * S,
            1,
            endless("fixed", SharePolicy.FIXED_SHARE, 20, PreemptionClass.ONLINE),
            endless("burst", SharePolicy.BURST_SHARE, 20, PreemptionClass.ONLINE),
            endless("nearline", SharePolicy.BURST_SHARE, 20, PreemptionClass.NEARLINE),
            endless("best effort", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE),
            endless("offline", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE));
    for (MixResult.OfTenant tenant : result.tenants()) {
      assertThat(tenant.heldPercent())
          .as("%s", tenant.name())
          .isCloseTo(tenant.entitledPercent(), offset(1.0));
    }
  }

  private static Mix.Member endless(
      String name, SharePolicy policy, int percent, PreemptionClass cls) {
    return tenant(name, policy, percent, cls, GateModel.processes(), ENDLESS, kernels(1, 8 * MS));
  }

  /**
   * A graph runs as a whole, many times longer than a turn. The other tenant gets back what the
   * graph was ahead, also if both have the same share.
   */
  @Test
  void longGraphsBesideShortKernelsGetTheirSharesAndNoMore() {
    for (long graphNs : List.of(15 * MS, 40 * MS, 120 * MS)) {
      for (int percent : List.of(20, 45, 50, 80)) {
        assertThat(heldByGraphs(SharePolicy.BURST_SHARE, percent, graphNs, true))
            .as("graphs of %d ns", graphNs)
            .isCloseTo(percent, offset(0.5));
      }
      for (boolean beside : List.of(true, false)) {
        assertThat(heldByGraphs(SharePolicy.FIXED_SHARE, 50, graphNs, beside))
            .as("graphs of %d ns", graphNs)
            .isCloseTo(50, offset(0.5));
      }
    }
  }

  private static double heldByGraphs(
      SharePolicy policy, int percent, long graphNs, boolean besideKernels) {
    Mix.Member graphs = busy("graphs", policy, percent, graphNs);
    Mix.Member kernels = busy("kernels", policy, 100 - percent, 100 * US);
    MixResult result = besideKernels ? run(60 * S, 1, graphs, kernels) : run(60 * S, 1, graphs);
    return result.tenants().get(0).heldPercent();
  }

  private static Mix.Member busy(String name, SharePolicy policy, int percent, long kernelNs) {
    return tenant(
        name,
        policy,
        percent,
        PreemptionClass.NEARLINE,
        GateModel.processes(),
        ENDLESS,
        kernels(1, kernelNs));
  }

  @Test
  void onlineWorkIsServedAtOnceAndTheRestIsLeftToOffline() {
    MixResult alone = run(60 * S, 3, chat(GateModel.processes(), 40));
    MixResult beside =
        run(
            60 * S,
            3,
            chat(GateModel.processes(), 40),
            offline("train", 60, GateModel.processes(), 300 * US));
    MixResult.OfTenant chat = beside.tenants().get(0);
    assertThat(chat.answered()).isCloseTo(alone.tenants().get(0).answered(), offset(2L));
    // The work in flight when a request arrives is bounded; beyond it, at most one slice of the
    // device is lost.
    long more =
        chat.latencies().percentileNs(50) - alone.tenants().get(0).latencies().percentileNs(50);
    assertThat(more).isLessThan(4 * MS);
    assertThat(beside.gpus().get(0).busyNs()).isGreaterThan((long) (0.9 * 60 * S));
  }

  @Test
  void tenantsComeAndGo() {
    Mix.Member first = offline("first", 50, GateModel.processes(), MS);
    Mix.Member second =
        new Mix.Member(
            "second",
            0,
            first.request(),
            first.model(),
            first.arrivals(),
            first.shape(),
            10 * S,
            20 * S);
    MixResult result = run(40 * S, 1, first, second);
    assertThat(result.tenants().get(1).presentNs()).isEqualTo(10 * S);
    assertThat(result.tenants().get(1).heldPercent()).isCloseTo(50, offset(0.5));
    assertThat(result.tenants().get(0).heldPercent()).isCloseTo(87.5, offset(0.5));
  }

  @Test
  void whatCapsLeaveIsNotLost() {
    Mix.Member fixed =
        tenant(
            "fixed",
            SharePolicy.FIXED_SHARE,
            30,
            PreemptionClass.NEARLINE,
            GateModel.processes(),
            ENDLESS,
            kernels(1, MS));
    MixResult result = run(30 * S, 1, fixed);
    assertThat(result.tenants().get(0).heldPercent()).isCloseTo(30, offset(0.2));
    assertThat(result.tenants().get(0).worstWindow()).isLessThan(2.5);
    assertThat(result.gpus().get(0).lostNs()).isZero();
  }

  @Test
  void programThatNeverWaitsKeepsTheGpuBusy() {
    RequestShape shape = new RequestShape(10, 10, new KernelTime.Fixed(100 * US), 0, 0);
    Mix.Member async =
        tenant(
            "async",
            SharePolicy.BEST_EFFORT,
            0,
            PreemptionClass.OFFLINE,
            GateModel.processes(),
            ENDLESS,
            shape);
    MixResult result = run(5 * S, 1, async);
    assertThat(result.gpus().get(0).busyNs()).isGreaterThan(4_999 * MS);
    assertThat(result.tenants().get(0).answered()).isCloseTo(5_000, offset(2L));
  }

  @Test
  void cancelledCallsRunAgain() {
    MixResult result =
        run(
            30 * S,
            1,
            chat(GateModel.calls(-1), 20),
            offline("batch", 100, GateModel.calls(MS), 200 * MS));
    MixResult.OfTenant batch = result.tenants().get(1);
    assertThat(batch.preemptions()).isPositive();
    assertThat(result.tenants().get(0).latencies().percentileNs(99)).isLessThan(30 * MS);
    assertThat(batch.kernels() * 200 * MS).isLessThanOrEqualTo(batch.usedNs());
  }

  @Test
  void tracesAreReplayedAndBegunAnew() {
    List<Arrivals.Request> requests =
        List.of(new Arrivals.Request(0, 1), new Arrivals.Request(500 * MS, 3));
    Mix.Member traced =
        tenant(
            "traced",
            SharePolicy.BEST_EFFORT,
            0,
            PreemptionClass.ONLINE,
            GateModel.ideal(-1),
            new Arrivals.Recorded(requests, S),
            kernels(1, MS));
    MixResult.OfTenant tenant = run(10 * S, 1, traced).tenants().get(0);
    assertThat(tenant.answered()).isEqualTo(20);
    assertThat(tenant.kernels()).isEqualTo(40);
    assertThat(tenant.latencies().largestNs()).isLessThan(4 * MS);
  }

  @Test
  void histogramIsExactToAHalfPercent() {
    LatencyHistogram histogram = new LatencyHistogram();
    for (long ns = 1; ns <= 1_000_000; ns++) {
      histogram.add(ns);
    }
    for (double percent : new double[] {0.001, 1, 50, 90, 99, 99.9, 100}) {
      double exact = percent * 10_000;
      assertThat((double) histogram.percentileNs(percent)).isBetween(exact, exact * 1.008 + 1);
    }
    assertThat(histogram.meanNs()).isCloseTo(500_000.5, offset(0.01));
    assertThat(histogram.largestNs()).isEqualTo(1_000_000);
  }
}
