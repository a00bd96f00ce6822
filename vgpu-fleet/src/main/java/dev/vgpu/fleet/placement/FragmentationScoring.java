package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/**
 * FGD: the steepest descent of fragmentation. Its score is rounded as the published one is: nodes
 * that differ by less count as equal, and the first of them is taken.
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
