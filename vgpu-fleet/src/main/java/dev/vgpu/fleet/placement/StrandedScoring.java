package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/**
 * The scoring for a fleet that fills: stranded GPU time, plus the price of places for several GPUs.
 */
final class StrandedScoring implements Scoring {
  private final Rollouts rollouts;
  private final GangPrices gangs;

  StrandedScoring(Workload workload) {
    rollouts = new Rollouts(workload);
    gangs = new GangPrices(workload, 1);
  }

  @Override
  public String name() {
    return "stranded";
  }

  @Override
  public float cost(NodeState before, NodeState after, Shape shape) {
    return rollouts.of(after) - rollouts.of(before);
  }

  @Override
  public long lost(NodeState before, NodeState after) {
    return gangs.lost(before, after);
  }

  @Override
  public float[] prices(Fleet fleet) {
    return gangs.prices(fleet);
  }

  /** Fewer, because a rollout takes longer than other measures. */
  @Override
  public int mostFresh() {
    return 20;
  }
}
