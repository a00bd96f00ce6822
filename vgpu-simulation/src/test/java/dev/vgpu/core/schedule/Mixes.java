package dev.vgpu.core.schedule;

import static dev.vgpu.simulation.VirtualNode.CHANGE_NS;
import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.SLICE_NS;
import static dev.vgpu.simulation.VirtualNode.US;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.NodeObserver;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;

/** Mixes of tenants that always have work, and their ideal division. */
final class Mixes {
  private static final int WINDOW_STEPS = 20;
  private static final long STEP = 50 * MS;

  private Mixes() {}

  /** A tenant that always has kernels or calls of one length. */
  record Busy(SharePolicy policy, int percent, PreemptionClass cls, long kernelNs) {}

  /** Two to sixteen tenants of one level, whose shares fit, with kernels of at most 2 ms. */
  static Arbitrary<List<Busy>> ofOneLevel() {
    Arbitrary<Busy> busy =
        Combinators.combine(
                Arbitraries.of(SharePolicy.values()),
                Arbitraries.integers().between(1, 60),
                Arbitraries.of(PreemptionClass.values()),
                Arbitraries.longs().between(50 * US, 2 * MS))
            .as(Busy::new);
    return Combinators.combine(busy.list().ofMinSize(2).ofMaxSize(16), Arbitraries.of(true, false))
        .as(Mixes::admitted);
  }

  private static List<Busy> admitted(List<Busy> wanted, boolean offline) {
    List<Busy> admitted = new ArrayList<>();
    int left = 100;
    for (Busy busy : wanted) {
      int percent = busy.policy() == SharePolicy.BEST_EFFORT ? 0 : Math.min(busy.percent(), left);
      SharePolicy policy = percent == 0 ? SharePolicy.BEST_EFFORT : busy.policy();
      left -= percent;
      PreemptionClass cls = offline ? PreemptionClass.OFFLINE : busy.cls();
      if (!offline && cls == PreemptionClass.OFFLINE) {
        cls = PreemptionClass.NEARLINE;
      }
      admitted.add(new Busy(policy, percent, cls, busy.kernelNs()));
    }
    return admitted;
  }

  /** Each tenant's ideal part of the level's time. */
  static double[] entitled(List<Busy> mix) {
    double guaranteed = mix.stream().mapToInt(Busy::percent).sum() / 100.0;
    long takers = mix.stream().filter(b -> b.policy() != SharePolicy.FIXED_SHARE).count();
    double part = takers == 0 ? 0 : Math.max(0, 1 - guaranteed) / takers;
    return mix.stream()
        .mapToDouble(b -> b.percent() / 100.0 + (b.policy() == SharePolicy.FIXED_SHARE ? 0 : part))
        .toArray();
  }

  static VirtualNode start(List<Busy> mix, GateModel model, SchedulerSettings settings) {
    VirtualNode node = new VirtualNode(settings, SLICE_NS, CHANGE_NS, NodeObserver.NONE);
    for (Busy busy : mix) {
      int number = node.gates().size();
      node.add(
          new VirtualGate("t" + number, model, VirtualNode.backlog(busy.kernelNs())),
          busy.policy(),
          busy.percent(),
          busy.cls());
    }
    return node;
  }

  /**
   * The largest deviation of any tenant from its part in any window of one second, as a part of
   * what is allowed: one point, or more if hand-overs are expensive. The lag then has a range of
   * twice what a turn may change it by, and a kernel of 2 ms ends a millisecond late. It also grows
   * while the tenant waits for the longest turn of another, which is longer than if hand-overs cost
   * nothing. If a tenant takes surplus, parts are of the GPU's work in that second, because
   * hand-overs are charged to no tenant.
   */
  static double worstSecondOfAllowed(
      VirtualNode node, List<Busy> mix, GateModel model, long seconds) {
    double[] entitled = entitled(mix);
    boolean takers = mix.stream().anyMatch(b -> b.policy() != SharePolicy.FIXED_SHARE);
    List<long[]> served = new ArrayList<>();
    double worst = 0;
    for (long atNs = 0; atNs <= seconds * S; atNs += STEP) {
      node.runUntil(atNs);
      long[] now = node.gates().stream().mapToLong(VirtualGate::servedNs).toArray();
      served.add(now);
      if (served.size() > WINDOW_STEPS) {
        long[] before = served.get(served.size() - 1 - WINDOW_STEPS);
        double all = 0;
        for (int i = 0; i < now.length; i++) {
          all += now[i] - before[i];
        }
        double whole = takers ? all : S;
        for (int i = 0; i < now.length; i++) {
          double offNs = Math.abs((now[i] - before[i]) - entitled[i] * whole);
          worst = Math.max(worst, offNs / allowedNs(model, entitled, i));
        }
      }
    }
    return worst;
  }

  /** From what a hand-over costs in the model, whatever the scheduler takes it for. */
  private static double allowedNs(GateModel model, double[] entitled, int tenant) {
    double handOverNs = model.tellNs() + model.wakeNs() + (model.isInSeat() ? 0 : CHANGE_NS);
    double longerNs = 0;
    for (int i = 0; i < entitled.length; i++) {
      if (i != tenant && entitled[i] < 1) {
        double ns = TurnLength.accuracyNs(handOverNs, entitled[i]) - SchedulerSettings.ACCURACY_NS;
        longerNs = Math.max(longerNs, ns / (1 - entitled[i]));
      }
    }
    double rate = entitled[tenant];
    return 2 * TurnLength.accuracyNs(handOverNs, rate) + MS + rate * longerNs;
  }
}
