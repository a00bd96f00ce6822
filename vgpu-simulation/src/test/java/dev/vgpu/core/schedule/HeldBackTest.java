package dev.vgpu.core.schedule;

import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Offset.offset;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** A tenant that a more urgent one holds back is not taken for one that reports no use. */
class HeldBackTest {
  /** Always has work, which stops by itself while the master's work runs; reports use in lumps. */
  private static final class YieldingGate extends BusyGate {
    private static final long LUMP_NS = 2 * MS;

    private final @Nullable YieldingGate master;
    long heldNs;
    private long sinceNs;

    YieldingGate(@Nullable YieldingGate master) {
      this.master = master;
    }

    void pass(long nowNs) {
      boolean runs = open && (master == null || !master.open);
      heldNs += runs ? nowNs - sinceNs : 0;
      sinceNs = nowNs;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      return heldNs / LUMP_NS * LUMP_NS;
    }

    @Override
    public long leastTurnNs() {
      return 20 * MS;
    }

    @Override
    public boolean yieldsByItself() {
      return true;
    }
  }

  private final List<YieldingGate> gates = new ArrayList<>();
  private final ShareScheduler scheduler =
      new ShareScheduler(VirtualNode.settings(0), (victim, by, asked) -> {}, 0);

  private YieldingGate add(
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      @Nullable YieldingGate master) {
    YieldingGate gate = new YieldingGate(master);
    gates.add(gate);
    scheduler.wanted(
        new Tenant("t" + gates.size(), gate, VirtualNode.request(policy, percent, preemptionClass)),
        0);
    return gate;
  }

  @Test
  void offlineSharesHoldBesideAnOnlineTenantAtItsCap() {
    YieldingGate online = add(SharePolicy.FIXED_SHARE, 70, PreemptionClass.ONLINE, null);
    YieldingGate large = add(SharePolicy.BURST_SHARE, 70, PreemptionClass.OFFLINE, online);
    YieldingGate small = add(SharePolicy.BURST_SHARE, 30, PreemptionClass.OFFLINE, online);
    for (long nowNs = 0; nowNs < 30 * S; ) {
      for (YieldingGate gate : gates) {
        gate.pass(nowNs);
      }
      int ignored = scheduler.doWork(nowNs);
      nowNs = Math.max(nowNs + 1_000, Math.min(nowNs + MS, scheduler.nextWakeNs()));
    }
    assertThat((double) online.heldNs / (30 * S)).isCloseTo(0.7, offset(0.005));
    double both = large.heldNs + small.heldNs;
    assertThat(large.heldNs / both).isCloseTo(0.7, offset(0.005));
  }
}
