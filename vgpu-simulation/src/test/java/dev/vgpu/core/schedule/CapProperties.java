package dev.vgpu.core.schedule;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static dev.vgpu.request.SharePolicy.BEST_EFFORT;
import static dev.vgpu.request.SharePolicy.BURST_SHARE;
import static dev.vgpu.request.SharePolicy.FIXED_SHARE;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.US;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import java.util.List;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** A fixed share: the tenant gets no more than its share, and not much less. */
@Tag("property")
class CapProperties {
  @Property(tries = 60)
  void fixedShareIsWhatItSaysBesideOfflineWorkThatPauses(
      @ForAll @IntRange(min = 1, max = 90) int percent,
      @ForAll boolean online,
      @ForAll @IntRange(min = 20, max = 5_000) int kernelUs,
      @ForAll @Size(min = 1, max = 3) List<@IntRange(min = 20, max = 1_000) Integer> offlineUs,
      @ForAll @IntRange(min = 20, max = 20_000) int pauseUs) {
    check(percent, online, kernelUs, offlineUs, pauseUs);
  }

  /** If the clock ran only with what offline work used alone, the tenant would get 11 %. */
  @Example
  void pausesOfOfflineWorkCountAsTimeThatPasses() {
    check(38, true, 840, List.of(20), 75);
  }

  /** If the clock ran with what both used at the same time, the tenant would get 95 %. */
  @Example
  void timeThatTwoUsedTogetherPassesOnce() {
    check(90, false, 4_999, List.of(528, 21, 23), 9_410);
  }

  /** If only the first milliseconds of each wait at the cap counted, the tenant would get 26 %. */
  @Example
  void aLongWaitAtTheCapCountsInFull() {
    check(32, false, 20, List.of(20, 97), 18_319);
  }

  /**
   * If offline work that ends within its first slice counted as sharing the GPU with the tenant,
   * the tenant would get 67.9 %.
   */
  @Example
  void offlineWorkThatEndsAtOnceTakesNoSlices() {
    check(66, false, 2_048, List.of(341, 29), 498);
  }

  /** If the slices of queued offline kernels counted as the tenant's, it would get 15.1 %. */
  @Example
  void queuedOfflineKernelsTakeNothingFromTheShare() {
    check(18, false, 238, List.of(20, 907), 101);
  }

  /** If the slice of each queued offline kernel were charged to the tenant, it would get 13.3 %. */
  @Example
  void queuedOfflineKernelsThatEndFirstTakeNothingFromTheShare() {
    check(16, true, 22, List.of(869, 28), 152);
  }

  /** The tenants pause at different moments. What one loses to hand-overs is not another's. */
  @Property(tries = 60)
  void fixedSharesThatPauseAreNotExceeded(
      @ForAll boolean together,
      @ForAll @Size(min = 1, max = 4) List<@IntRange(min = 1, max = 25) Integer> percents,
      @ForAll @Size(4) List<@IntRange(min = 20, max = 5_000) Integer> kernelUs,
      @ForAll @Size(4) List<@IntRange(min = 0, max = 5_000) Integer> pauseUs,
      @ForAll @Size(max = 3) List<@IntRange(min = 20, max = 1_000) Integer> offlineUs) {
    GateModel model = together ? GateModel.processes() : GateModel.processes().strict();
    VirtualNode node = new VirtualNode();
    for (int i = 0; i < percents.size(); i++) {
      Pausing work = new Pausing(kernelUs.get(i) * US, pauseUs.get(i) * US);
      VirtualGate gate = new VirtualGate("fixed" + i, model, work);
      node.add(gate, FIXED_SHARE, percents.get(i), i % 2 == 0 ? ONLINE : NEARLINE);
    }
    for (int us : offlineUs) {
      Pausing work = new Pausing(us * US, us * US);
      VirtualGate gate = new VirtualGate("off", model, work);
      node.add(gate, BEST_EFFORT, 0, OFFLINE);
    }
    node.runUntil(10 * S);
    for (int i = 0; i < percents.size(); i++) {
      assertThat(100.0 * node.gate(i).servedNs() / node.nowNs())
          .as("%d %%", percents.get(i))
          .isLessThan(percents.get(i) + 0.5);
    }
  }

  /** If time that passed in one tenant's pause counted for it twice, each would get 37.5 %. */
  @Example
  void pausesOfTwoFixedSharesCountOnce() {
    VirtualNode node = new VirtualNode();
    int one = pausing(node, 30, 1_000, 1_000);
    int other = pausing(node, 30, 1_000, 1_000);
    addOfflineWork(node);
    node.runUntil(20 * S);
    assertThat(100.0 * node.gate(one).servedNs() / node.nowNs()).isBetween(29.0, 30.5);
    assertThat(100.0 * node.gate(other).servedNs() / node.nowNs()).isBetween(29.0, 30.5);
  }

  /** If a tenant that pauses were not paid for hand-overs, this one would get 36.8 %. */
  @Example
  void handOversAreMadeUpForThoughTheTenantPauses() {
    VirtualNode node = new VirtualNode();
    int fixed = pausing(node, 40, 5_000, 120);
    addOfflineWork(node);
    node.runUntil(20 * S);
    assertThat(100.0 * node.gate(fixed).servedNs() / node.nowNs()).isBetween(39.0, 40.5);
  }

  /**
   * Of turns that began early, some use is charged twice at first. If a tenant in a pause did not
   * get it back, each would get 18.8 %.
   */
  @Example
  void useThatWasChargedTwiceIsGivenBackInAPause() {
    VirtualNode node = new VirtualNode();
    int one = pausing(node, 20, 5_000, 120);
    int other = pausing(node, 20, 5_000, 120);
    node.runUntil(20 * S);
    assertThat(100.0 * node.gate(one).servedNs() / node.nowNs()).isBetween(19.7, 20.3);
    assertThat(100.0 * node.gate(other).servedNs() / node.nowNs()).isBetween(19.7, 20.3);
  }

  /**
   * Kernels of less than a slice, with pauses. If the later of two turns were taken to fill its
   * slices, the nearline tenant would get 43.6 %.
   */
  @Example
  void useOfTurnsThatBeganEarlyIsDividedByWhatTheLaterOneReports() {
    VirtualNode node = new VirtualNode();
    int online = pausing(node, 22, 223, 129);
    VirtualGate gate =
        new VirtualGate("near", GateModel.processes(), new Pausing(323 * US, 29 * US));
    int nearline = node.add(gate, FIXED_SHARE, 39, NEARLINE);
    node.runUntil(20 * S);
    assertThat(100.0 * node.gate(online).servedNs() / node.nowNs()).isBetween(21.5, 22.5);
    assertThat(100.0 * node.gate(nearline).servedNs() / node.nowNs()).isBetween(38.5, 39.5);
  }

  private static int pausing(VirtualNode node, int percent, int kernelUs, int pauseUs) {
    Pausing work = new Pausing(kernelUs * US, pauseUs * US);
    return node.add(
        new VirtualGate("fixed", GateModel.processes(), work), FIXED_SHARE, percent, ONLINE);
  }

  private static void addOfflineWork(VirtualNode node) {
    for (int percent : new int[] {70, 30}) {
      int ignored = node.processes(BURST_SHARE, percent, OFFLINE, 1_000 * US);
    }
  }

  private static void check(
      int percent, boolean online, int kernelUs, List<Integer> offlineUs, int pauseUs) {
    VirtualNode node = new VirtualNode();
    int fixed = node.processes(FIXED_SHARE, percent, online ? ONLINE : NEARLINE, kernelUs * US);
    for (int us : offlineUs) {
      VirtualGate gate =
          new VirtualGate("off", GateModel.processes(), new Pausing(us * US, pauseUs * US));
      node.add(gate, BEST_EFFORT, 0, OFFLINE);
    }
    node.runUntil(20 * S);
    double served = 100.0 * node.gate(fixed).servedNs() / node.nowNs();
    // An offline kernel that begins while the tenant is at its cap delays it by what it takes.
    assertThat(served).isBetween(percent * 0.9 - 0.5, percent + 1.0);
  }
}
