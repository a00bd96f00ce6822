package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeKind;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;
import java.util.List;

/**
 * The cumulative odds of a workload's shapes for one kind of node, by the processors and the share
 * or number of whole GPUs that they need. Immutable.
 */
final class FragmentationTable {
  static final int WHOLE = 100;

  private final NodeKind kind;

  /** The distinct numbers of processors (in thousandths) that shapes need, ascending. */
  private final int[] cpuSteps;

  /** By processor step, then percent: the cumulative odds of shares that fit. */
  private final float[][] shares;

  /** By processor step, then GPUs: the cumulative odds of whole-GPU shapes that fit. */
  private final float[][] wholes;

  /** The odds of all shapes except offline shares, which use no idle share. */
  private final float counted;

  FragmentationTable(NodeKind kind, Workload workload) {
    this.kind = kind;
    List<Shape> shapes = workload.shapes();
    cpuSteps = shapes.stream().mapToInt(Shape::cpuMillis).sorted().distinct().toArray();
    shares = new float[cpuSteps.length + 1][WHOLE + 2];
    wholes = new float[cpuSteps.length + 1][kind.gpus() + 2];
    float sum = 0;
    for (int i = 0; i < shapes.size(); i++) {
      Shape shape = shapes.get(i);
      float odd = workload.odds().get(i).floatValue();
      boolean isCounted = shape.isWhole() || !shape.isOffline();
      sum += isCounted ? odd : 0;
      if (isCounted && shape.gpus() > 0 && !shape.isMig() && shape.takes(kind.model())) {
        for (int step = step(shape.cpuMillis()); step <= cpuSteps.length; step++) {
          if (shape.isWhole()) {
            wholes[step][Math.min(shape.gpus(), kind.gpus() + 1)] += odd;
          } else {
            shares[step][Fragmentation.need(kind, shape)] += odd;
          }
        }
      }
    }
    counted = sum;
    addUp(shares);
    addUp(wholes);
  }

  private static void addUp(float[][] table) {
    for (float[] row : table) {
      for (int i = 1; i < row.length; i++) {
        row[i] += row[i - 1];
      }
    }
  }

  /** {@return the number of steps that so many processors cover} */
  private int step(int cpuMillis) {
    int low = 0;
    int high = cpuSteps.length;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (cpuSteps[middle] <= cpuMillis) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  float fragmentation(NodeState state) {
    int step = step(state.cpuMillis());
    float[] share = shares[step];
    int gpus = state.gpus();
    int most = 0;
    int idle = 0;
    for (int slot = 0; slot < gpus; slot++) {
      int free = free(state, slot);
      most = Math.max(most, free);
      idle += free;
    }
    float fittingShares = share[most];
    float unusable = 0;
    for (int slot = 0; slot < gpus; slot++) {
      int free = free(state, slot);
      unusable += free * (fittingShares - share[free]);
    }
    float fittingWholes = wholes[step][state.untouchedGpus()];
    return idle * (counted - fittingShares - fittingWholes)
        + unusable
        + fittingWholes * (idle - WHOLE * state.untouchedGpus());
  }

  private int free(NodeState state, int slot) {
    int free = state.freePercent(slot);
    return kind.gpuMebibytes() == 0
        ? free
        : Math.min(
            free, Fragmentation.percent(state.freeMebibytes(slot), kind.gpuMebibytes(), false));
  }
}
