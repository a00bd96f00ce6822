package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;

/**
 * The "binpack" and "spread" of cluster schedulers: the node with the least (or the most) free GPU
 * time, and on it the GPU with the least (or the most).
 */
final class PackingScoring implements Scoring {
  private final boolean isSpread;

  PackingScoring(boolean isSpread) {
    this.isSpread = isSpread;
  }

  @Override
  public String name() {
    return isSpread ? "spread" : "binpack";
  }

  @Override
  public float cost(NodeState before, NodeState after, Shape shape) {
    float squares = 0;
    for (int slot = 0; slot < after.gpus(); slot++) {
      float free = after.freePercent(slot) / 100f;
      squares += free * free;
    }
    // The node's free time decides; the evenness of what is left chooses among its GPUs.
    float even = squares / (1 + after.gpus());
    return isSpread ? even - before.idlePercent() : before.idlePercent() - even;
  }
}
