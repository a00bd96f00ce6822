package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.NodeKind;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How much idle GPU time of a node a request drawn from the workload could not use, on average: the
 * measure of FGD (Weng et al., "Beware of Fragmentation", USENIX ATC 2023).
 *
 * <p>A GPU's free part is the lesser of its free share and its free memory. Host memory is not
 * looked at, as in the published measure; nor are offline shapes, which use no idle share. The sums
 * over the workload are made once for each kind of node.
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

  /** {@return what a share of this shape needs of such a GPU, in percent} */
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
