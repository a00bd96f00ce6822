package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/** Best fit: prefers the node with the least left over, of processors and GPUs alike. */
final class BestFitScoring implements Scoring {
  private final double mostCpuMillis;
  private final double mostPercent;

  /**
   * Creates the scoring.
   *
   * @param mostCpuMillis the most processors of a node, in thousandths
   * @param mostGpus the most GPUs of a node
   */
  BestFitScoring(int mostCpuMillis, int mostGpus) {
    this.mostCpuMillis = Math.max(1, mostCpuMillis);
    this.mostPercent = Math.max(1, 100.0 * mostGpus);
  }

  @Override
  public String name() {
    return "best-fit";
  }

  @Override
  public float cost(NodeState before, NodeState after, Shape shape) {
    return (float) (after.cpuMillis() / mostCpuMillis + after.idlePercent() / mostPercent);
  }
}
