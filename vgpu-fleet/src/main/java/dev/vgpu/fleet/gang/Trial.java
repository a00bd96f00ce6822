package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Shape;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.fleet.placement.PlacementPolicy;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.function.IntPredicate;

/** Places all members of a gang, or none: if one does not fit, the others are undone. */
final class Trial {
  private final Fleet fleet;
  private final PlacementPolicy policy;

  Trial(Fleet fleet, PlacementPolicy policy) {
    this.fleet = fleet;
    this.policy = policy;
  }

  /**
   * {@return the placements of all members; empty if they do not fit, and then nothing has changed}
   *
   * @param members the requests to place together
   * @param closeness how close they must be
   * @param allowed which nodes may be used
   */
  Optional<List<Placement>> place(
      List<Request> members, Terms.Closeness closeness, IntPredicate allowed) {
    if (closeness == Terms.Closeness.ANYWHERE || members.size() == 1) {
      return anywhere(members, allowed);
    }
    for (String rack : racks(members)) {
      Optional<List<Placement>> placed =
          anywhere(members, node -> rackOf(node).equals(rack) && allowed.test(node));
      if (placed.isPresent()) {
        return placed;
      }
    }
    return closeness == Terms.Closeness.RACK_REQUIRED
        ? Optional.empty()
        : anywhere(members, allowed);
  }

  private Optional<List<Placement>> anywhere(List<Request> members, IntPredicate allowed) {
    Affinity affinity = new Affinity(members);
    List<Request> order = new ArrayList<>(members);
    // The largest first, but a request that depends on another comes after it.
    order.sort(
        Comparator.comparing(affinity::depth)
            .thenComparing(member -> -member.shape().totalPercent()));
    List<Placement> placed = new ArrayList<>();
    for (Request member : order) {
      Optional<Spot> spot = choose(member, affinity, allowed);
      if (spot.isEmpty()) {
        undo(placed);
        return Optional.empty();
      }
      placed.add(fleet.place(member, spot.get()));
    }
    return Optional.of(placed);
  }

  void undo(List<Placement> placed) {
    for (int i = placed.size() - 1; i >= 0; i--) {
      fleet.undo(placed.get(i));
    }
  }

  private static boolean isDependent(Request member) {
    return !member.sameNodeAs().isEmpty();
  }

  private Optional<Spot> choose(Request member, Affinity affinity, IntPredicate allowed) {
    if (isDependent(member)) {
      return fleet
          .placement(member.sameNodeAs())
          .flatMap(
              other ->
                  policy.choose(
                      fleet,
                      member,
                      node -> node == other.node() && restricted(member, allowed).test(node)));
    }
    IntPredicate may = restricted(member, allowed);
    List<Shape> others = affinity.followers(member).stream().map(Request::shape).toList();
    if (!member.spread().isEmpty()) {
      return spread(member, others, may);
    }
    if (others.isEmpty() && may == FleetQueue.ANY) {
      return policy.choose(fleet, member);
    }
    return policy.choose(
        fleet, member, node -> may.test(node) && holdsAll(node, member.shape(), others));
  }

  private IntPredicate restricted(Request member, IntPredicate allowed) {
    return member.nodes().isEmpty()
        ? allowed
        : node -> member.allows(fleet.nodes().get(node).name()) && allowed.test(node);
  }

  /** {@return whether a node has room for a request and for all that depend on it} */
  private boolean holdsAll(int node, Shape first, List<Shape> others) {
    NodeState state = fleet.state(node);
    if (!state.fits(first)) {
      return false;
    }
    if (others.isEmpty()) {
      return true;
    }
    NodeState left = state.after(first, first.gpus() == 0 ? 0 : state.nextSlot(first, -1));
    for (Shape other : others) {
      if (!left.fits(other)) {
        return false;
      }
      left = left.after(other, other.gpus() == 0 ? 0 : left.nextSlot(other, -1));
    }
    return true;
  }

  /** Chooses a node without a member of the group, in the rack with the fewest members. */
  private Optional<Spot> spread(Request member, List<Shape> others, IntPredicate allowed) {
    Map<Integer, List<String>> byCount = new TreeMap<>();
    Map<String, Integer> counts = new TreeMap<>();
    for (NodeSpec node : fleet.nodes()) {
      counts.putIfAbsent(node.rack(), 0);
    }
    for (int node : fleet.nodesOf(member.spread())) {
      counts.merge(rackOf(node), 1, Integer::sum);
    }
    counts.forEach(
        (rack, count) -> byCount.computeIfAbsent(count, key -> new ArrayList<>()).add(rack));
    for (List<String> racks : byCount.values()) {
      Optional<Spot> spot =
          policy.choose(
              fleet,
              member,
              node ->
                  racks.contains(rackOf(node))
                      && allowed.test(node)
                      && !fleet.nodesOf(member.spread()).contains(node)
                      && holdsAll(node, member.shape(), others));
      if (spot.isPresent()) {
        return spot;
      }
    }
    return Optional.empty();
  }

  private String rackOf(int node) {
    return fleet.nodes().get(node).rack();
  }

  /** {@return the racks with enough idle GPU time for all members, the fullest first} */
  private List<String> racks(List<Request> members) {
    long needed = members.stream().mapToLong(member -> member.shape().totalPercent()).sum();
    Map<String, Long> idle = new TreeMap<>();
    for (int node = 0; node < fleet.nodes().size(); node++) {
      idle.merge(rackOf(node), (long) fleet.state(node).idlePercent(), Long::sum);
    }
    return idle.entrySet().stream()
        .filter(entry -> entry.getValue() >= needed)
        .sorted(Map.Entry.comparingByValue())
        .map(Map.Entry::getKey)
        .toList();
  }
}
