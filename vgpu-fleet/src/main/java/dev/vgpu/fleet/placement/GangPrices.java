package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Shape;
import dev.vgpu.fleet.model.StateGroup;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The price of losing one of the last nodes that can host a shape with several GPUs: the GPU time
 * of the shape, times the square of the probability that the node will be missed. Caches which of
 * these shapes each state can host, by the state's number.
 */
final class GangPrices {
  private static final int MOST_SHAPES = 62;
  private static final long KNOWN = 1L << 63;

  private final List<Shape> shapes = new ArrayList<>();
  private final List<Double> odds = new ArrayList<>();
  private final double meanPercent;
  private final float weight;
  private long[] hosted = new long[256];
  private int[] nodes = new int[0];
  private int era;
  private @Nullable Fleet watched;

  GangPrices(Workload workload, double weight) {
    this.weight = (float) weight;
    meanPercent = Math.max(1, workload.meanPercent());
    for (int i = 0; i < workload.shapes().size(); i++) {
      if (workload.shapes().get(i).needsSeveral() && shapes.size() < MOST_SHAPES) {
        shapes.add(workload.shapes().get(i));
        odds.add(workload.odds().get(i));
      }
    }
  }

  /** {@return a bit set of the shapes that fit before and do not fit after} */
  long lost(NodeState before, NodeState after) {
    long bits = 0;
    for (int i = 0; i < shapes.size(); i++) {
      bits |= before.fits(shapes.get(i)) && !after.fits(shapes.get(i)) ? 1L << i : 0;
    }
    return bits;
  }

  /** {@return the current price of each shape, in percent of one GPU} */
  float[] prices(Fleet fleet) {
    int[] hosting = hostingNodes(fleet);
    double arrivals = fleet.idlePercent() / meanPercent;
    float[] prices = new float[shapes.size()];
    for (int i = 0; i < prices.length; i++) {
      double missed = Math.min(1, odds.get(i) * arrivals / Math.max(1, hosting[i]));
      prices[i] = (float) (weight * shapes.get(i).totalPercent() * missed * missed);
    }
    return prices;
  }

  /** {@return for each shape, the number of nodes that can host it} Counted once, then updated. */
  private int[] hostingNodes(Fleet fleet) {
    if (!fleet.equals(watched)) {
      watched = fleet;
      nodes = new int[shapes.size()];
      fleet.groups().forEach(group -> count(fleet, group, group.size()));
      fleet.listen(
          (before, after) -> {
            count(fleet, before, -1);
            count(fleet, after, 1);
          });
    }
    return nodes;
  }

  private void count(Fleet fleet, StateGroup group, int change) {
    if (era != fleet.era()) {
      Arrays.fill(hosted, 0);
      era = fleet.era();
    }
    for (long bits = hosted(group) & ~KNOWN; bits != 0; bits &= bits - 1) {
      nodes[Long.numberOfTrailingZeros(bits)] += change;
    }
  }

  private long hosted(StateGroup group) {
    int id = group.id();
    if (id >= hosted.length) {
      hosted = Arrays.copyOf(hosted, Math.max(2 * hosted.length, id + 1));
    }
    if (hosted[id] == 0) {
      long bits = KNOWN;
      for (int i = 0; i < shapes.size(); i++) {
        bits |= group.state().fits(shapes.get(i)) ? 1L << i : 0;
      }
      hosted[id] = bits;
    }
    return hosted[id];
  }
}
