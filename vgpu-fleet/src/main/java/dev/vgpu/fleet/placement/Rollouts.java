package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeKind;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;

/**
 * The potential of a node: the GPU time that stays stranded after the node was filled with typical
 * requests, on average over fixed sequences that are the same for all nodes. Caches the results.
 */
final class Rollouts {
  private static final int SEQUENCES = 32;
  private static final int LENGTH = 100;
  private static final int MOST_REMEMBERED = 1 << 18;
  private static final long SEED = 42;

  private final Shape[][] drawn = new Shape[SEQUENCES][LENGTH];
  private final Map<NodeKind, RolloutSequence[]> sequences = new HashMap<>();
  private final Map<NodeState, Float> known = new HashMap<>();
  private final int[] free = new int[NodeSpec.MOST_GPUS];

  Rollouts(Workload workload) {
    Random random = new Random(SEED);
    for (Shape[] sequence : drawn) {
      for (int i = 0; i < LENGTH; i++) {
        sequence[i] = draw(workload, random.nextDouble());
      }
    }
  }

  private static Shape draw(Workload workload, double at) {
    double sum = 0;
    for (int i = 0; i < workload.shapes().size(); i++) {
      sum += workload.odds().get(i);
      if (at < sum) {
        return workload.shapes().get(i);
      }
    }
    return workload.shapes().get(workload.shapes().size() - 1);
  }

  /** {@return the stranded GPU time, in percent of one GPU} */
  float of(NodeState state) {
    if (state.idlePercent() == 0) {
      return 0;
    }
    Float remembered = known.get(state);
    if (remembered != null) {
      return remembered;
    }
    int sum = 0;
    for (RolloutSequence sequence : sequences(state.kind())) {
      sum += sequence.fill(state, free);
    }
    float mean = (float) sum / SEQUENCES;
    if (known.size() >= MOST_REMEMBERED) {
      known.clear();
    }
    known.put(state, mean);
    return mean;
  }

  private RolloutSequence[] sequences(NodeKind kind) {
    return sequences.computeIfAbsent(
        kind,
        key -> {
          RolloutSequence[] made = new RolloutSequence[SEQUENCES];
          for (int i = 0; i < SEQUENCES; i++) {
            made[i] = new RolloutSequence(key, drawn[i]);
          }
          return made;
        });
  }
}
