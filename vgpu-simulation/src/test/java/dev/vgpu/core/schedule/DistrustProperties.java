package dev.vgpu.core.schedule;

import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.LongUnaryOperator;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;

/** A tenant that misreports its use harms only itself. */
@Tag("property")
class DistrustProperties {
  /** A gate that always has work, and may misreport its use. */
  private static final class ToldGate extends BusyGate {
    final LongUnaryOperator tells;
    long heldNs;
    long sinceNs;

    ToldGate(LongUnaryOperator tells) {
      this.tells = tells;
    }

    void pass(long nowNs) {
      heldNs += open ? nowNs - sinceNs : 0;
      sinceNs = nowNs;
    }

    @Override
    public long gpuTimeNs(long nowNs) {
      pass(nowNs);
      return tells.applyAsLong(heldNs);
    }
  }

  private enum Lie {
    NOTHING,
    BACKWARDS,
    TOO_MUCH,
    NONSENSE
  }

  private static LongUnaryOperator lie(Lie lie, long seed) {
    Random random = new Random(seed);
    return switch (lie) {
      case NOTHING -> held -> 0;
      case BACKWARDS -> held -> 3600 * S - held;
      case TOO_MUCH -> held -> held * (2 + random.nextInt(1000));
      case NONSENSE -> held -> random.nextLong();
    };
  }

  private final List<ToldGate> gates = new ArrayList<>();

  private ToldGate add(
      ShareScheduler scheduler, SharePolicy policy, int percent, LongUnaryOperator tells) {
    ToldGate gate = new ToldGate(tells);
    Tenant tenant =
        new Tenant(
            "t" + gates.size(),
            gate,
            VirtualNode.request(policy, percent, PreemptionClass.NEARLINE));
    gates.add(gate);
    scheduler.wanted(tenant, 0);
    return gate;
  }

  private void run(ShareScheduler scheduler, long endNs) {
    long nowNs = 0;
    while (nowNs < endNs) {
      for (ToldGate gate : gates) {
        gate.pass(nowNs);
      }
      int ignored = scheduler.doWork(nowNs);
      nowNs = Math.max(nowNs + 1_000, Math.min(nowNs + MS, scheduler.nextWakeNs()));
    }
  }

  @Property(tries = 40)
  void whoLiesAboutItsUseHarmsNobodyElse(
      @ForAll Lie lie, @ForAll @IntRange(min = 1, max = 1000) int seed) {
    gates.clear();
    ShareScheduler scheduler =
        new ShareScheduler(VirtualNode.settings(0), (victim, by, asked) -> {}, 0);
    ToldGate liar = add(scheduler, SharePolicy.BURST_SHARE, 40, lie(lie, seed));
    ToldGate burst = add(scheduler, SharePolicy.BURST_SHARE, 30, held -> held);
    ToldGate fixed = add(scheduler, SharePolicy.FIXED_SHARE, 30, held -> held);
    run(scheduler, 20 * S);
    assertThat((double) burst.heldNs / (20 * S)).isGreaterThan(0.29);
    assertThat((double) fixed.heldNs / (20 * S)).isGreaterThan(0.28);
    assertThat((double) liar.heldNs / (20 * S)).isLessThan(0.42);
  }
}
