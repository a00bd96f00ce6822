package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/**
 * The scoring for a fleet in which work starts and ends: fragmentation, plus the price of places
 * for several GPUs. Costs are rounded to 1 % of a GPU. Nodes with equal costs are taken in order,
 * so the first nodes stay full and the last ones stay empty.
 */
final class PricedFragmentationScoring implements Scoring {
  private static final float STEP_PERCENT = 1;

  /** Less than 1, because a lost place for several GPUs reappears when work ends. */
  private static final double PRICE_WEIGHT = 0.25;

  private final Fragmentation fragmentation;
  private final GangPrices gangs;

  PricedFragmentationScoring(Workload workload) {
    fragmentation = new Fragmentation(workload);
    gangs = new GangPrices(workload, PRICE_WEIGHT);
  }

  @Override
  public String name() {
    return "priced-fragmentation";
  }

  @Override
  public float cost(NodeState before, NodeState after, Shape shape) {
    return fragmentation.of(after) - fragmentation.of(before);
  }

  @Override
  public long lost(NodeState before, NodeState after) {
    return gangs.lost(before, after);
  }

  @Override
  public float[] prices(Fleet fleet) {
    return gangs.prices(fleet);
  }

  @Override
  public float step() {
    return STEP_PERCENT;
  }
}
