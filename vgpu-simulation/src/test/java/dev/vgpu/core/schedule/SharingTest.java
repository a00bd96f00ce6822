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

import dev.vgpu.core.schedule.SchedulerState.Mode;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** When several gates are open together, and what follows. */
class SharingTest {
  private static double served(VirtualNode node, int tenant) {
    return 100.0 * node.gate(tenant).servedNs() / node.nowNs();
  }

  @Test
  void busyBestEffortProcessesTakeTurnsForEqualParts() {
    VirtualNode node = new VirtualNode();
    for (long kernelNs : new long[] {100 * US, 1 * MS, 2 * MS}) {
      node.processes(BEST_EFFORT, 0, NEARLINE, kernelNs);
    }
    node.runUntil(20 * S);
    assertThat(node.scheduler().state().mode()).isEqualTo(Mode.STRICT);
    assertThat(node.scheduler().state().reason()).contains("do not fit beside each other");
    double all = served(node, 0) + served(node, 1) + served(node, 2);
    for (int i = 0; i < 3; i++) {
      assertThat(100 * served(node, i) / all).isCloseTo(100 / 3.0, offset(0.5));
    }
  }

  @Test
  void thoseWithUnlikeSharesTakeTurnsThatOverlapForAMoment() {
    VirtualNode node = new VirtualNode();
    int large = node.processes(BURST_SHARE, 75, OFFLINE, 1 * MS);
    int small = node.processes(BURST_SHARE, 25, OFFLINE, 1 * MS);
    node.runUntil(60 * S);
    SchedulerState state = node.scheduler().state();
    assertThat(state.mode()).isEqualTo(Mode.STRICT);
    double all = served(node, large) + served(node, small);
    assertThat(served(node, large) / all).isCloseTo(0.75, offset(0.001));
    double turns = node.gate(large).opened() + node.gate(small).opened();
    double changes = 100 * turns * VirtualNode.CHANGE_NS / node.nowNs();
    assertThat(all + changes).as("only one change is lost with each turn").isGreaterThan(99.7);
  }

  /** A kernel that arrives earlier makes a GPU change the process two more times. */
  @Test
  void nextTurnBeginsWhenTheLastWorkOfTheOneBeforeAlmostEnds() {
    VirtualNode node = new VirtualNode();
    node.processes(BURST_SHARE, 60, NEARLINE, 200 * US);
    node.processes(BURST_SHARE, 40, NEARLINE, 200 * US);
    boolean[] wasOpen = new boolean[2];
    boolean[] ran = new boolean[2];
    long openedNs = 0;
    List<Long> together = new ArrayList<>();
    for (long atNs = 0; atNs < 3 * S; atNs += 20 * US) {
      node.runUntil(atNs);
      for (int i = 0; i < 2; i++) {
        VirtualGate other = node.gate(1 - i);
        openedNs = node.gate(i).isOpen() && !wasOpen[i] && other.isRunning() ? atNs : openedNs;
        if (openedNs > S && !node.gate(i).isRunning() && ran[i] && !node.gate(i).isOpen()) {
          together.add(atNs - openedNs);
          openedNs = 0;
        }
        wasOpen[i] = node.gate(i).isOpen();
        ran[i] = node.gate(i).isRunning();
      }
    }
    together.sort(null);
    assertThat(together).hasSizeGreaterThan(50);
    assertThat(together.get(together.size() / 2)).isLessThan(500 * US);
  }

  @Test
  void nobodyIsHeldBackForOneThatDoesNotUseTheGpu() {
    VirtualNode node = new VirtualNode();
    int modest =
        node.add(
            new VirtualGate("modest", GateModel.processes(), new Pausing(100 * US, 900 * US)),
            BURST_SHARE,
            90,
            OFFLINE);
    int greedy = node.processes(BEST_EFFORT, 0, OFFLINE, 1 * MS);
    node.runUntil(20 * S);
    assertThat(served(node, modest) + served(node, greedy)).isGreaterThan(80);
  }

  /**
   * Each tenant reports its kernels' time, which includes slices of others that have work. Each
   * kernel's time begins and ends with a slice of its own, which the estimate ignores.
   */
  @Test
  void whatProcessesWithPausesUseIsBookedAsTheirs() {
    for (int count : new int[] {2, 3}) {
      for (long pauseNs : new long[] {0, 100 * US, 2 * MS, 5 * MS}) {
        VirtualNode node = new VirtualNode();
        for (int i = 0; i < count; i++) {
          Pausing work = new Pausing((15 + i) * MS, pauseNs);
          node.add(new VirtualGate("p" + i, GateModel.processes(), work), BEST_EFFORT, 0, NEARLINE);
        }
        node.runUntil(20 * S);
        double booked = node.tenants().stream().mapToDouble(tenant -> tenant.bookedNs).sum();
        double served = node.gates().stream().mapToLong(VirtualGate::servedNs).sum();
        assertThat(booked / served).as("%d, pause %d", count, pauseNs).isBetween(0.97, 1.03);
      }
    }
  }

  @Test
  void fixedShareAmongThemMakesThemTakeTurns() {
    VirtualNode node = new VirtualNode();
    int fixed = node.processes(FIXED_SHARE, 30, NEARLINE, 1 * MS);
    node.processes(BEST_EFFORT, 0, NEARLINE, 1 * MS);
    node.runUntil(20 * S);
    SchedulerState state = node.scheduler().state();
    assertThat(state.mode()).isEqualTo(Mode.STRICT);
    assertThat(state.reason()).contains("t0 has a fixed share");
    assertThat(served(node, fixed)).isCloseTo(30, offset(1.0));
  }

  @Test
  void settingsMayAskForStrictTurns() {
    SchedulerSettings auto = VirtualNode.settings(0);
    VirtualNode node =
        new VirtualNode(
            new SchedulerSettings(
                auto.shortestTurnNs(),
                auto.longestTurnNs(),
                auto.lingerNs(),
                0,
                true,
                auto.lockoutNs()));
    node.processes(BEST_EFFORT, 0, ONLINE, 1 * MS);
    node.processes(BEST_EFFORT, 0, ONLINE, 1 * MS);
    for (long atNs = MS; atNs < S; atNs += MS) {
      node.runUntil(atNs);
      assertThat(node.gates().stream().filter(VirtualGate::isOpen).count()).isLessThanOrEqualTo(1);
    }
    assertThat(node.scheduler().state().reason()).contains("settings");
  }

  @Test
  void onlineAndOfflineGatesAreOpenTogetherWhereBothYieldByThemselves() {
    VirtualNode node = new VirtualNode();
    int online = node.sporadicProcesses(BEST_EFFORT, 0, ONLINE);
    int offline = node.processes(BEST_EFFORT, 0, OFFLINE, 500 * US);
    for (long atNs = 5 * MS; atNs < 10 * S; atNs += 10 * MS) {
      node.arrive(online, atNs, 1 * MS);
    }
    node.runUntil(10 * S);
    SchedulerState state = node.scheduler().state();
    assertThat(state.mode()).isEqualTo(Mode.OVERLAP);
    assertThat(state.switches()).isLessThan(10);
    assertThat(served(node, online)).isCloseTo(10, offset(0.1));
    assertThat(served(node, offline)).isGreaterThan(0.95 * 90);
  }

  @Test
  void stormOfShortRequestsDoesNotMakeTheGpuChangeHandsAllTheTime() {
    VirtualNode node = new VirtualNode();
    int online = node.sporadicProcesses(BEST_EFFORT, 0, ONLINE);
    int offline = node.processes(BEST_EFFORT, 0, OFFLINE, 500 * US);
    for (long atNs = 1 * MS; atNs < 5 * S; atNs += 1 * MS) {
      node.arrive(online, atNs, 100 * US);
    }
    node.runUntil(5 * S);
    assertThat(node.scheduler().state().switches()).isLessThan(20);
    assertThat(node.steps()).isLessThan(15_000); // most of them are for arrivals
    assertThat(served(node, online)).isCloseTo(10, offset(0.1));
    double changes = 100.0 * 2 * VirtualNode.CHANGE_NS / MS; // to each request, and back
    // The lane lingers, and waking takes time.
    assertThat(served(node, offline)).isGreaterThan(75 - changes);
  }

  @Test
  void stormOfShortCallsLeavesTheGpuToWork() {
    VirtualNode node = new VirtualNode();
    GateModel calls = GateModel.calls(50 * US);
    int online =
        node.add(new VirtualGate("on", calls, VirtualNode.backlog(0)), BEST_EFFORT, 0, ONLINE);
    int offline =
        node.add(
            new VirtualGate("off", calls, VirtualNode.backlog(500 * US)), BEST_EFFORT, 0, OFFLINE);
    for (long atNs = 1 * MS; atNs < 5 * S; atNs += 1 * MS) {
      node.arrive(online, atNs, 100 * US);
    }
    node.runUntil(5 * S);
    assertThat(served(node, online) + served(node, offline)).isGreaterThan(90);
  }

  @Test
  void floorHoldsAlsoAgainstTheLane() {
    VirtualNode node = new VirtualNode(20);
    int online = node.processes(BEST_EFFORT, 0, ONLINE, 1 * MS);
    int offline = node.processes(BEST_EFFORT, 0, OFFLINE, 1 * MS);
    node.runUntil(20 * S);
    assertThat(served(node, offline)).isBetween(19.5, 23.0);
    assertThat(served(node, online)).isGreaterThan(75.0);
  }

  @Test
  void offlineProcessesTakeTurnsWhereOnlineWorkMayCome() {
    VirtualNode node = new VirtualNode();
    int online = node.sporadicProcesses(BEST_EFFORT, 0, ONLINE);
    node.processes(BEST_EFFORT, 0, OFFLINE, 1 * MS);
    node.processes(BEST_EFFORT, 0, OFFLINE, 1 * MS);
    node.arrive(online, MS, MS);
    for (long atNs = 100 * MS; atNs < S; atNs += MS) {
      node.runUntil(atNs);
      long open = node.gates().stream().skip(1).filter(VirtualGate::isOpen).count();
      assertThat(open).isLessThanOrEqualTo(1);
    }
  }

  @Test
  void turnsGrowWithWhatAHandOverCosts() {
    long[] turnNs = new long[2];
    for (int dear = 0; dear < 2; dear++) {
      VirtualNode node = new VirtualNode();
      GateModel model = dear == 0 ? GateModel.ideal(-1) : wakesAfter(60 * US);
      for (int i = 0; i < 2; i++) {
        node.add(
            new VirtualGate("t" + i, model, VirtualNode.backlog(500 * US)),
            FIXED_SHARE,
            50,
            ONLINE);
      }
      node.runUntil(5 * S);
      turnNs[dear] = node.scheduler().state().turnNs();
      assertThat(served(node, 0) + served(node, 1)).isGreaterThan(99);
    }
    assertThat(turnNs[0]).isEqualTo(2 * MS);
    assertThat(turnNs[1]).isBetween(5 * MS, 9 * MS);
  }

  private static GateModel wakesAfter(long wakeNs) {
    return new GateModel(0, wakeNs, 0, 0, 0, 0, 0, false, 0, false, false, -1);
  }

  @Test
  void anIdleGpuIsIdle() {
    VirtualNode node = new VirtualNode();
    int once = node.sporadicProcesses(BEST_EFFORT, 0, ONLINE);
    SchedulerState before = node.scheduler().state();
    assertThat(before.mode()).isEqualTo(Mode.IDLE);
    node.arrive(once, MS, MS);
    node.runUntil(MS + 500 * US);
    SchedulerState state = node.scheduler().state();
    assertThat(state.mode()).isEqualTo(Mode.ALONE);
    assertThat(state.holder()).hasValue("t0");
    assertThat(state.reason()).isEqualTo("only t0 has work");
  }
}
