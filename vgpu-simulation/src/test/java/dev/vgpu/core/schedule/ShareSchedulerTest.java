package dev.vgpu.core.schedule;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static dev.vgpu.request.SharePolicy.BEST_EFFORT;
import static dev.vgpu.request.SharePolicy.BURST_SHARE;
import static dev.vgpu.request.SharePolicy.FIXED_SHARE;
import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.US;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;

import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.NodeObserver;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import dev.vgpu.simulation.Workload;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ShareSchedulerTest {
  @Test
  void fixedSharesDivideTheGpu() {
    VirtualNode node = new VirtualNode();
    int large = node.backlogged(FIXED_SHARE, 75, OFFLINE, 59 * MS);
    int small = node.backlogged(FIXED_SHARE, 25, OFFLINE, 59 * MS);
    node.runUntil(100 * S);
    assertThat(node.percent(large)).isCloseTo(75, offset(0.1));
    assertThat(node.percent(small)).isCloseTo(25, offset(0.1));
  }

  @Test
  void fixedShareIsACapOnAnIdleGpu() {
    VirtualNode node = new VirtualNode();
    int alone = node.backlogged(FIXED_SHARE, 30, ONLINE, 300 * US);
    node.runUntil(10 * S);
    assertThat(node.percent(alone)).isCloseTo(30, offset(0.1));
  }

  @Test
  void fixedShareIsACapAlsoWhereItsUseIsToldInLumps() {
    VirtualNode node = new VirtualNode();
    VirtualGate gate =
        new VirtualGate("t0", GateModel.ideal(-1).inLumps(), VirtualNode.backlog(900 * US));
    int alone = node.add(gate, FIXED_SHARE, 50, ONLINE);
    for (long atNs = 0; atNs < 10 * S; atNs += 100 * US) {
      node.at(atNs, () -> {}); // makes the scheduler step
    }
    node.runUntil(10 * S);
    assertThat(node.percent(alone)).isCloseTo(50, offset(0.1));
  }

  @Test
  void burstTakesAllOfAnIdleGpuAndGivesItBack() {
    VirtualNode node = new VirtualNode();
    int large = node.backlogged(BURST_SHARE, 75, NEARLINE, 1 * MS);
    node.runUntil(10 * S);
    assertThat(node.percent(large)).isCloseTo(100, offset(0.1));
    long before = node.usedNs(large);
    int small = node.backlogged(BURST_SHARE, 25, NEARLINE, 1 * MS);
    node.runUntil(20 * S);
    assertThat((node.usedNs(large) - before) / 1e9).isCloseTo(7.5, offset(0.01));
    assertThat(node.usedNs(small) / 1e9).isCloseTo(2.5, offset(0.01));
  }

  /** With turns of 9 ms, which are accurate if changes take no time, 6 % would be lost. */
  @Test
  void turnsAreLongerWhereChangesBetweenProcessesTakeLonger() {
    SchedulerSettings settings = VirtualNode.settings(0);
    VirtualNode node = new VirtualNode(settings, VirtualNode.SLICE_NS, 600 * US, NodeObserver.NONE);
    for (int i = 0; i < 2; i++) {
      VirtualGate gate =
          new VirtualGate("t" + i, GateModel.processes().strict(), VirtualNode.backlog(900 * US));
      node.add(gate, BEST_EFFORT, 0, NEARLINE);
    }
    node.runUntil(10 * S);
    assertThat(node.percent(0) + node.percent(1)).isBetween(96.0, 98.0);
    assertThat(node.percent(0)).isCloseTo(node.percent(1), offset(0.5));
  }

  @Test
  void aCappedTenantAloneWaitsNoLongerThoughChangesBetweenProcessesTakeTime() {
    VirtualNode node = new VirtualNode();
    VirtualGate gate = new VirtualGate("t0", GateModel.processes(), VirtualNode.backlog(900 * US));
    int alone = node.add(gate, FIXED_SHARE, 50, NEARLINE);
    node.runUntil(S);
    assertThat(node.scheduler().state().turnNs()).isEqualTo(9 * MS);
    assertThat(node.percent(alone)).isCloseTo(50, offset(1.0));
  }

  /**
   * Beginning turns before such kernels' expected ends cost 5.4 %: each third turn, two changes.
   */
  @Test
  void kernelsWhoseEndsCannotBeForeseenCostNoMoreChanges() {
    VirtualNode node = new VirtualNode();
    for (int i = 0; i < 4; i++) {
      VirtualGate gate = new VirtualGate("t" + i, GateModel.processes(), new Varied(i));
      node.add(gate, BEST_EFFORT, 0, NEARLINE);
    }
    node.runUntil(8 * S);
    double servedNs = node.gates().stream().mapToLong(VirtualGate::servedNs).sum();
    assertThat(servedNs / node.nowNs()).isGreaterThan(0.96);
  }

  /** Endless kernels of 1 to 10 ms. */
  private static final class Varied implements Workload {
    private final Random random;

    Varied(long seed) {
      random = new Random(seed);
    }

    @Override
    public boolean hasKernel() {
      return true;
    }

    @Override
    public long takeKernel() {
      return (long) ((1 + 9 * random.nextDouble()) * MS);
    }

    @Override
    public long kernelEnded(long nowNs) {
      return 0;
    }

    @Override
    public void cancelled(long kernelNs) {
      throw new IllegalStateException("they cannot be cancelled");
    }
  }

  @Test
  void surplusIsSharedInEqualPartsAmongBurstAndBestEffort() {
    VirtualNode node = new VirtualNode();
    int fixed = node.backlogged(FIXED_SHARE, 20, NEARLINE, 1 * MS);
    int burst = node.backlogged(BURST_SHARE, 20, NEARLINE, 1 * MS);
    int bestEffort1 = node.backlogged(BEST_EFFORT, 0, NEARLINE, 3 * MS);
    int bestEffort2 = node.backlogged(BEST_EFFORT, 0, NEARLINE, 1 * MS);
    node.runUntil(60 * S);
    assertThat(node.percent(fixed)).isCloseTo(20, offset(0.2));
    assertThat(node.percent(burst)).isCloseTo(40, offset(0.2));
    assertThat(node.percent(bestEffort1)).isCloseTo(20, offset(0.2));
    assertThat(node.percent(bestEffort2)).isCloseTo(20, offset(0.2));
  }

  @Test
  void onlineArrivalShutsOfflineAtOnceAndRunsNext() {
    VirtualNode node = new VirtualNode();
    VirtualGate batch = new VirtualGate("batch", 50 * MS, 1 * MS);
    node.add(batch, BEST_EFFORT, 0, OFFLINE);
    int online = node.sporadic(BEST_EFFORT, 0, ONLINE);
    node.arrive(online, 120 * MS, 5 * MS);
    node.runUntil(120 * MS);
    assertThat(batch.isOpen()).isFalse();
    assertThat(batch.preempted()).isEqualTo(1);
    assertThat(node.decisions()).contains("120000000 t1 preempts batch");
    node.runUntil(121 * MS);
    assertThat(node.gate(online).isRunning()).isTrue();
    node.runUntil(126 * MS + 100 * US); // it lingers briefly
    assertThat(batch.isOpen()).isTrue();
  }

  @Test
  void nearlinePreemptsOfflineAndIsNotPreempted() {
    VirtualNode node = new VirtualNode();
    VirtualGate batch = new VirtualGate("batch", 50 * MS, 0);
    node.add(batch, BEST_EFFORT, 0, OFFLINE);
    VirtualGate soon = new VirtualGate("soon", 0, 0);
    int nearline = node.add(soon, BEST_EFFORT, 0, NEARLINE);
    int online = node.sporadic(BEST_EFFORT, 0, ONLINE);
    node.arrive(nearline, 20 * MS, 40 * MS);
    node.arrive(online, 30 * MS, 5 * MS);
    node.runUntil(200 * MS);
    assertThat(batch.preempted()).isEqualTo(1);
    assertThat(soon.preempted()).isZero();
    assertThat(soon.finished()).isEqualTo(1);
  }

  @Test
  void offlineStarvesBesideABusyOnlineTenantWithoutAFloor() {
    VirtualNode node = new VirtualNode();
    node.backlogged(BEST_EFFORT, 0, ONLINE, 1 * MS);
    int offline = node.backlogged(BEST_EFFORT, 0, OFFLINE, 1 * MS);
    node.runUntil(10 * S);
    assertThat(node.usedNs(offline)).isZero();
  }

  @ParameterizedTest
  @CsvSource({"1, 1", "10, 1", "10, 40", "50, 5"})
  void offlineFloorHolds(int floorPercent, int callMs) {
    VirtualNode node = new VirtualNode(floorPercent);
    int online = node.backlogged(BEST_EFFORT, 0, ONLINE, 1 * MS);
    int offline = node.backlogged(BEST_EFFORT, 0, OFFLINE, callMs * MS);
    node.runUntil(100 * S);
    assertThat(node.percent(offline)).isCloseTo(floorPercent, offset(0.2));
    assertThat(node.percent(online)).isCloseTo(100 - floorPercent, offset(0.2));
  }

  /** The guarantees and the floor fit, so the floor takes only what the others would share. */
  @Test
  void floorIsPaidFromTheSurplusBeforeTheGuarantees() {
    VirtualNode node = new VirtualNode(10);
    int fixed = node.backlogged(FIXED_SHARE, 20, ONLINE, 1 * MS);
    int burst = node.backlogged(BURST_SHARE, 50, NEARLINE, 1 * MS);
    int rest = node.backlogged(BEST_EFFORT, 0, NEARLINE, 1 * MS);
    int offline = node.backlogged(BEST_EFFORT, 0, OFFLINE, 1 * MS);
    node.runUntil(20 * S);
    assertThat(node.percent(fixed)).isCloseTo(20, offset(0.2));
    assertThat(node.percent(burst)).isCloseTo(60, offset(0.2));
    assertThat(node.percent(rest)).isCloseTo(10, offset(0.2));
    assertThat(node.percent(offline)).isCloseTo(10, offset(0.2));
  }

  @Test
  void offlineGetsWhatACappedOnlineTenantLeaves() {
    VirtualNode node = new VirtualNode();
    int online = node.backlogged(FIXED_SHARE, 40, ONLINE, 1 * MS);
    int large = node.backlogged(BURST_SHARE, 75, OFFLINE, 1 * MS);
    int small = node.backlogged(FIXED_SHARE, 25, OFFLINE, 1 * MS);
    node.runUntil(60 * S);
    assertThat(node.percent(online)).isCloseTo(40, offset(0.3));
    assertThat(node.percent(large)).isCloseTo(45, offset(0.3));
    assertThat(node.percent(small)).isCloseTo(15, offset(0.3));
  }

  @Test
  void nearlineGuaranteeHoldsBesideAGreedyOnlineTenant() {
    VirtualNode node = new VirtualNode();
    int online = node.backlogged(BEST_EFFORT, 0, ONLINE, 1 * MS);
    int nearline = node.backlogged(FIXED_SHARE, 30, NEARLINE, 1 * MS);
    node.runUntil(60 * S);
    assertThat(node.percent(nearline)).isCloseTo(30, offset(0.1));
    assertThat(node.percent(online)).isCloseTo(70, offset(0.1));
  }

  @ParameterizedTest
  @CsvSource({"FIXED_SHARE", "BURST_SHARE"})
  void anOverrunIsPaidBack(SharePolicy policy) {
    VirtualNode node = new VirtualNode();
    int small = node.backlogged(policy, 25, OFFLINE, 1 * MS);
    int large = node.backlogged(policy, 75, OFFLINE, 1 * MS);
    node.gate(small).queue(900 * MS);
    node.runUntil(2 * S);
    assertThat(node.percent(small)).isGreaterThan(40);
    node.runUntil(10 * S);
    assertThat(node.percent(small)).isCloseTo(25, offset(0.1));
    assertThat(node.percent(large)).isCloseTo(75, offset(0.1));
  }

  @Test
  void aGiantCallLocksItsTenantOutForABoundedTime() {
    VirtualNode node = new VirtualNode();
    int giant = node.backlogged(BURST_SHARE, 10, OFFLINE, 1 * MS);
    node.backlogged(BURST_SHARE, 90, OFFLINE, 1 * MS);
    node.gate(giant).queue(600 * S);
    node.runUntil(600 * S);
    long after = node.usedNs(giant);
    node.runUntil(640 * S);
    assertThat(node.usedNs(giant)).isGreaterThan(after);
  }

  @Test
  void aTenantThatMakesOneCallAfterTheOtherGetsItsShare() {
    // A thread that is briefly between two calls must not lose its turn each time.
    VirtualNode node = new VirtualNode();
    int large = node.sporadic(FIXED_SHARE, 75, OFFLINE);
    int small = node.sporadic(FIXED_SHARE, 25, OFFLINE);
    for (int tenant : new int[] {large, small}) {
      node.at(0, () -> callAgain(node, tenant, 0));
    }
    node.runUntil(20 * S);
    assertThat(node.percent(large)).isCloseTo(75, offset(1.0));
    assertThat(node.percent(small)).isCloseTo(25, offset(1.0));
  }

  private static void callAgain(VirtualNode node, int tenant, int finishedBefore) {
    VirtualGate gate = node.gate(tenant);
    if (gate.finished() >= finishedBefore && !gate.hasWork()) {
      node.arrive(tenant, node.nowNs() + 5 * US, 1 * MS);
    }
    node.at(node.nowNs() + 20 * US, () -> callAgain(node, tenant, gate.finished()));
  }

  @Test
  void timeThatWasNotUsedIsNotSavedUp() {
    VirtualNode node = new VirtualNode();
    int idle = node.sporadic(BURST_SHARE, 50, NEARLINE);
    int busy = node.backlogged(BURST_SHARE, 50, NEARLINE, 1 * MS);
    node.runUntil(10 * S);
    long before = node.usedNs(busy);
    for (int i = 0; i < 2000; i++) {
      node.arrive(idle, 10 * S, 1 * MS);
    }
    node.runUntil(12 * S);
    assertThat((node.usedNs(busy) - before) / 1e9).isCloseTo(1.0, offset(0.01));
  }

  @Test
  void aTenantThatLeavesAndComesBackDoesNotShedItsDebt() {
    VirtualNode node = new VirtualNode();
    int shy = node.sporadic(BURST_SHARE, 50, NEARLINE);
    int steady = node.backlogged(BURST_SHARE, 50, NEARLINE, 1 * MS);
    // 80 ms of work in calls of 20 ms, then a pause of 20 ms: it wants 80 % and is entitled to 50
    // %.
    for (int i = 0; i < 100; i++) {
      for (int j = 0; j < 4; j++) {
        node.arrive(shy, i * 100L * MS, 20 * MS);
      }
    }
    node.runUntil(10 * S);
    assertThat(node.percent(shy)).isLessThan(51);
    assertThat(node.percent(steady)).isGreaterThan(49);
  }

  @Test
  void stepsAreFewWhileNothingHappens() {
    // Each step wakes a thread: two per turn are enough, however long the calls.
    VirtualNode node = new VirtualNode();
    node.backlogged(BURST_SHARE, 60, NEARLINE, 50 * MS);
    node.backlogged(FIXED_SHARE, 30, NEARLINE, 50 * MS);
    node.backlogged(BURST_SHARE, 10, OFFLINE, 50 * MS);
    node.runUntil(10 * S);
    assertThat(node.steps()).isLessThan(10_000);
  }

  @Test
  void nothingIsDueWhenNobodyHasWork() {
    VirtualNode node = new VirtualNode();
    int once = node.sporadic(FIXED_SHARE, 50, ONLINE);
    int other = node.sporadic(BEST_EFFORT, 0, OFFLINE);
    node.arrive(once, 1 * MS, 7 * MS);
    node.arrive(other, 2 * MS, 7 * MS);
    node.runUntil(1 * S);
    for (Tenant tenant : node.tenants()) {
      node.scheduler().remove(tenant, node.nowNs());
    }
    node.scheduler().doWork(node.nowNs());
    assertThat(node.scheduler().holder()).isNull();
    assertThat(node.scheduler().nextWakeNs()).isEqualTo(TurnStepper.NEVER);
  }
}
