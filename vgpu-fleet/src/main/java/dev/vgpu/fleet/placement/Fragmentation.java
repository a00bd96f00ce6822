package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeKind;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The idle GPU time of a node that a request drawn from the workload could not use, on average.
 * This is the measure of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023).
 *
 * <p>The free part of a GPU is its free share or its free memory, whichever is less. As in the
 * published measure, host memory is ignored. Offline shapes are ignored too, because they use no
 * idle share. The sums over the workload are computed once for each kind of node.
 */
final class Fragmentation {
  private final Workload workload;
  private final Map<NodeKind, FragmentationTable> tables = new HashMap<>();
  private @Nullable NodeKind lastKind;
  private @Nullable FragmentationTable lastTable;

  Fragmentation(Workload workload) {
    this.workload = workload;
  }

  /** {@return the fragmentation, in percent of one GPU} */
  float of(NodeState state) {
    return state.idlePercent() == 0 ? 0 : table(state.kind()).fragmentation(state);
  }

  private FragmentationTable table(NodeKind kind) {
    FragmentationTable table = lastTable;
    if (table == null || !kind.equals(lastKind)) {
      table = tables.computeIfAbsent(kind, key -> new FragmentationTable(key, workload));
      lastKind = kind;
      lastTable = table;
    }
    return table;
  }

  /** {@return the part of such a GPU that a share of this shape needs, in percent} */
  static int need(NodeKind kind, Shape shape) {
    return shape.isWhole()
        ? FragmentationTable.WHOLE
        : Math.max(
            shape.sharePercent(),
            percent(shape.mebibytesOn(kind.gpuMebibytes()), kind.gpuMebibytes(), true));
  }

  static int percent(int part, int all, boolean isUp) {
    if (all == 0) {
      return part > 0 ? FragmentationTable.WHOLE + 1 : 0;
    }
    long scaled = (long) FragmentationTable.WHOLE * part;
    return (int) Math.min(FragmentationTable.WHOLE + 1, (isUp ? scaled + all - 1 : scaled) / all);
  }
}
