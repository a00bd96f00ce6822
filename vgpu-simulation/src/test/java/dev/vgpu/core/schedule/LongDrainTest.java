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
import org.junit.jupiter.api.Test;

/** A turn that begins early, and waits for the previous turn's work, is not taken for silent. */
class LongDrainTest {
  /** Always has work. Some of it is queued on the GPU when the gate is shut, and runs first. */
  private final class DrainingGate extends BusyGate {
    private static final long LUMP_NS = MS / 2;

    private final long drainNs;
    private long leftNs;
    private long usedNs;
    private long toldNs;

    DrainingGate(long drainNs) {
      this.drainNs = drainNs;
    }

    @Override
    public boolean shut() {
      open = false;
      leftNs = drainNs;
      return false;
    }

    @Override
    public long gpuTimeNs(long atNs) {
      boolean rests = leftNs == 0 && !open;
      toldNs = Math.max(toldNs, rests ? usedNs : usedNs / LUMP_NS * LUMP_NS);
      return toldNs;
    }

    @Override
    public long busyUntilNs() {
      return nowNs;
    }

    @Override
    public boolean mayOverlap() {
      return true;
    }

    @Override
    public long leastTurnNs() {
      return 20 * MS;
    }
  }

  private static final long STEP_NS = 10_000;

  private final List<DrainingGate> gates = new ArrayList<>();
  private final List<Tenant> tenants = new ArrayList<>();
  private final ShareScheduler scheduler =
      new ShareScheduler(VirtualNode.settings(0), (victim, by, asked) -> {}, 0);
  private long nowNs;

  private DrainingGate add(int percent, long drainNs) {
    DrainingGate gate = new DrainingGate(drainNs);
    gates.add(gate);
    Tenant tenant =
        new Tenant(
            "t" + percent,
            gate,
            VirtualNode.request(SharePolicy.BURST_SHARE, percent, PreemptionClass.NEARLINE));
    tenants.add(tenant);
    scheduler.wanted(tenant, 0);
    return gate;
  }

  /** Serves queued work first. */
  private void serve() {
    for (int i = 0; i < gates.size(); i++) {
      DrainingGate gate = gates.get(i);
      if (gate.leftNs > 0) {
        gate.leftNs -= STEP_NS;
        gate.usedNs += STEP_NS;
        if (gate.leftNs == 0) {
          scheduler.drained(tenants.get(i), nowNs);
        }
        return;
      }
    }
    for (DrainingGate gate : gates) {
      if (gate.open) {
        gate.usedNs += STEP_NS;
        return;
      }
    }
  }

  @Test
  void smallShareBehindLongDrainsHolds() {
    DrainingGate large = add(90, 11 * MS / 2);
    DrainingGate small = add(10, 2 * MS);
    while (nowNs < 60 * S) {
      int ignored = scheduler.doWork(nowNs);
      nowNs += STEP_NS;
      serve();
    }
    double both = (double) large.usedNs + small.usedNs;
    assertThat(small.usedNs / both).isCloseTo(0.1, offset(0.002));
  }
}
