package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/** Best fit: the node on which the least is left, of processors and of GPUs alike. */
final class BestFitScoring implements Scoring {
  private final double mostCpuMillis;
  private final double mostPercent;

  /**
   * Makes the scoring.
   *
   * @param mostCpuMillis of a node
   * @param mostGpus of a node
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
