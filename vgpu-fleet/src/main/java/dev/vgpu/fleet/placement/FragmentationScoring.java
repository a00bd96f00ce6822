package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/**
 * FGD: prefers the steepest descent of fragmentation. The score is rounded as in the published
 * version; among nodes with equal rounded scores, the first is taken.
 */
final class FragmentationScoring implements Scoring {
  private static final double WHOLE_PERCENT = 100;
  private static final int LEVELS = 100;

  private final Fragmentation fragmentation;

  FragmentationScoring(Workload workload) {
    fragmentation = new Fragmentation(workload);
  }

  @Override
  public String name() {
    return "fgd";
  }

  @Override
  public float cost(NodeState before, NodeState after, Shape shape) {
    double gain = (double) (fragmentation.of(before) - fragmentation.of(after)) / WHOLE_PERCENT;
    return -(int) (LEVELS / (1 + Math.exp(-gain)));
  }
}
