package dev.vgpu.core.schedule;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static dev.vgpu.request.SharePolicy.BEST_EFFORT;
import static dev.vgpu.request.SharePolicy.BURST_SHARE;
import static dev.vgpu.request.SharePolicy.FIXED_SHARE;
import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import org.junit.jupiter.api.Test;

/**
 * If tenants leave part of their turns unused and offline work fills it, no other tenant of their
 * level waits longer.
 */
class StarvationTest {
  /** After each kernel its host pauses for as long. */
  private static final Pausing HALF = new Pausing(MS, MS);

  private final VirtualNode node = new VirtualNode();
  private int added;

  private int add(SharePolicy policy, int percent, PreemptionClass preemptionClass) {
    VirtualGate gate = new VirtualGate("t" + added++, StandStillProperties.LATE, HALF);
    return node.add(gate, policy, percent, preemptionClass);
  }

  /** Runs the node, and returns the longest time for which a tenant's gate was shut. */
  private static long longestWaitNs(VirtualNode node, int tenant) {
    long longestNs = 0;
    long sinceNs = 0;
    int opened = 0;
    for (long nowNs = MS; nowNs <= 20 * S; nowNs += MS) {
      node.runUntil(nowNs);
      if (node.gate(tenant).isOpen() || node.gate(tenant).opened() != opened) {
        opened = node.gate(tenant).opened();
        sinceNs = nowNs;
      }
      longestNs = Math.max(longestNs, nowNs - sinceNs);
    }
    return longestNs;
  }

  @Test
  void nearlineTenantIsNotKeptWaitingByOnlineOnesThatPause() {
    add(FIXED_SHARE, 40, ONLINE);
    add(BURST_SHARE, 30, ONLINE);
    int nearline = add(BURST_SHARE, 25, NEARLINE);
    node.processes(BEST_EFFORT, 0, OFFLINE, MS);
    assertThat(longestWaitNs(node, nearline)).isLessThan(S / 2);
    assertThat(node.gate(nearline).servedNs()).isGreaterThan(20 * S / 10);
  }

  @Test
  void bestEffortTenantIsNotKeptWaitingByGuaranteedOnesThatPause() {
    add(FIXED_SHARE, 20, ONLINE);
    add(BURST_SHARE, 25, ONLINE);
    add(BURST_SHARE, 25, NEARLINE);
    int bestEffort = add(BEST_EFFORT, 0, NEARLINE);
    node.processes(BEST_EFFORT, 0, OFFLINE, MS);
    assertThat(longestWaitNs(node, bestEffort)).isLessThan(S / 2);
  }

  @Test
  void tenantsWithFixedSharesThatPauseDoNotKeepEachOtherWaiting() {
    add(FIXED_SHARE, 60, ONLINE);
    int nearline = add(FIXED_SHARE, 40, NEARLINE);
    node.processes(BEST_EFFORT, 0, OFFLINE, MS);
    assertThat(longestWaitNs(node, nearline)).isLessThan(S / 2);
  }

  @Test
  void onlineTenantIsNotKeptWaitingByAFloorTurnThatIsHardlyUsed() {
    VirtualNode floored = new VirtualNode(6);
    int online = floored.processes(BEST_EFFORT, 0, ONLINE, MS);
    VirtualGate pauses =
        new VirtualGate("pauses", StandStillProperties.LATE, new Pausing(MS / 20, 2 * MS));
    floored.add(pauses, BEST_EFFORT, 0, OFFLINE);
    assertThat(longestWaitNs(floored, online)).isLessThan(100 * MS);
  }
}
