package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Spot;
import java.util.Optional;
import java.util.Random;
import java.util.function.IntPredicate;

/** A random node on which the request fits, and on it the first suitable GPU. */
final class RandomPolicy implements PlacementPolicy {
  private static final long SEED = 7;

  private final Random random = new Random(SEED);

  @Override
  public String name() {
    return "random";
  }

  @Override
  public Optional<Spot> choose(Fleet fleet, Request request) {
    return choose(fleet, request, node -> true);
  }

  @Override
  public Optional<Spot> choose(Fleet fleet, Request request, IntPredicate allowed) {
    int nodes = fleet.nodes().size();
    int start = nodes == 0 ? 0 : random.nextInt(nodes);
    for (int i = 0; i < nodes; i++) {
      int node = (start + i) % nodes;
      NodeState state = fleet.state(node);
      if (allowed.test(node) && state.fits(request.shape())) {
        int slot = request.shape().gpus() == 0 ? 0 : state.nextSlot(request.shape(), -1);
        return Optional.of(new Spot(node, slot));
      }
    }
    return Optional.empty();
  }
}
