package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Shape;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.fleet.model.StateGroup;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.IntPredicate;

/**
 * Chooses the spot with the least cost; among equal costs, the first node. Evaluates each distinct
 * state once, and computes only the costs that are not cached.
 *
 * <p>In a fleet with more than {@value #FEW_STATES} states, a decision that has found a node
 * computes about {@code mostFresh} unknown costs at most. Later decisions compute the others. This
 * bounds the time of a decision.
 */
final class ScoredPolicy implements PlacementPolicy {
  private static final int MOST_SHAPES = 512;

  /** With at most this many distinct states, a decision computes all unknown costs. */
  private static final int FEW_STATES = 850;

  private static final int NONE = -1;
  private static final float NOWHERE = Float.POSITIVE_INFINITY;

  private final Scoring scoring;
  private final Map<Shape, Memory> memories = new HashMap<>();
  private int era;
  private int turn;
  private float[] prices = new float[0];

  ScoredPolicy(Scoring scoring) {
    this.scoring = scoring;
  }

  @Override
  public String name() {
    return scoring.name();
  }

  @Override
  public Optional<Spot> choose(Fleet fleet, Request request) {
    return choose(fleet, request, node -> true);
  }

  @Override
  public Optional<Spot> choose(Fleet fleet, Request request, IntPredicate allowed) {
    Shape shape = request.shape();
    Memory memory = memory(fleet, shape);
    prices = scoring.prices(fleet);
    List<StateGroup> groups = fleet.groups();
    int[] ids = fleet.groupIds();
    int best = NONE;
    int slot = 0;
    float least = NOWHERE;
    int fresh = 0;
    int count = groups.size();
    int mostFresh = count <= FEW_STATES ? Integer.MAX_VALUE : scoring.mostFresh();
    turn = count == 0 ? 0 : (turn + 1) % count;
    for (int i = 0; i < count; i++) {
      int at = i + turn < count ? i + turn : i + turn - count;
      int id = ids[at];
      if (!memory.isKnown(id)) {
        StateGroup group = groups.get(at);
        if ((best != NONE && fresh >= mostFresh)
            || (group.state().fits(shape) && group.firstNode(allowed) == NONE)) {
          continue;
        }
        fresh += remember(group, shape, memory);
      }
      // Prices only add to a cost, and rounding takes less than a step from it.
      if (memory.cost(id) == NOWHERE || memory.cost(id) - scoring.step() > least) {
        continue;
      }
      float cost = priced(id, memory);
      if (cost > least) {
        continue;
      }
      int node = groups.get(at).firstNode(allowed);
      if (node != NONE && (cost < least || node < best)) {
        least = cost;
        best = node;
        slot = memory.slot(id);
      }
    }
    return best == NONE ? Optional.empty() : Optional.of(new Spot(best, slot));
  }

  private float priced(int id, Memory memory) {
    float cost = memory.cost(id);
    for (long bits = memory.lost(id); bits != 0; bits &= bits - 1) {
      cost += prices[Long.numberOfTrailingZeros(bits)];
    }
    float step = scoring.step();
    return step > 0 ? (float) Math.rint(cost / step) * step : cost;
  }

  /** {@return the number of costs that were computed} */
  private int remember(StateGroup group, Shape shape, Memory memory) {
    NodeState before = group.state();
    int bestSlot = 0;
    float least = NOWHERE;
    long lost = 0;
    int computed = 0;
    int slot = !before.fits(shape) ? -1 : shape.gpus() == 0 ? 0 : before.nextSlot(shape, -1);
    while (slot >= 0) {
      NodeState after = before.after(shape, slot);
      float cost = scoring.cost(before, after, shape);
      computed++;
      if (cost < least) {
        least = cost;
        bestSlot = slot;
        lost = scoring.lost(before, after);
      }
      slot = shape.gpus() == 0 ? -1 : before.nextSlot(shape, slot);
    }
    memory.put(group.id(), least, bestSlot, lost);
    return computed;
  }

  private Memory memory(Fleet fleet, Shape shape) {
    if (era != fleet.era() || memories.size() > MOST_SHAPES) {
      memories.clear();
      era = fleet.era();
    }
    return memories.computeIfAbsent(shape, key -> new Memory());
  }
}
