package dev.vgpu.fleet.gang;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;

/**
 * Tries on the model what would fit once gangs have ended or are evicted. Every trial restores the
 * fleet.
 */
final class Planner {
  private final Fleet fleet;
  private final Trial trial;

  Planner(Fleet fleet, Trial trial) {
    this.fleet = fleet;
    this.trial = trial;
  }

  /**
   * {@return the earliest time and place at which a gang fits if all running gangs end as expected,
   * except those whose node it must share; empty if it does not fit even then}
   */
  Optional<Reservation> reserve(
      String name, List<Request> members, Terms terms, Collection<Gang> running) {
    List<Gang> order = othersThanTargets(members, running);
    order.sort(Comparator.comparingDouble(Gang::endS));
    int low = 0;
    int high = order.size();
    Optional<Set<Integer>> found = nodesWithout(order, high, members, terms, FleetQueue.ANY);
    if (found.isEmpty()) {
      return Optional.empty();
    }
    // Find the smallest number of gangs that must end: it gives the earliest time.
    while (low < high) {
      int middle = (low + high) >>> 1;
      Optional<Set<Integer>> nodes = nodesWithout(order, middle, members, terms, FleetQueue.ANY);
      if (nodes.isPresent()) {
        found = nodes;
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    double start = high == 0 ? 0 : order.get(high - 1).endS();
    return Optional.of(new Reservation(name, start, found.orElseThrow()));
  }

  /** {@return whether a gang would fit on these nodes once all running gangs have ended} */
  boolean mayFit(List<Request> members, Terms terms, Set<Integer> nodes, Collection<Gang> running) {
    List<Gang> order = othersThanTargets(members, running);
    return nodesWithout(order, order.size(), members, terms, nodes::contains).isPresent();
  }

  /** {@return the running gangs, without those whose node a member must share} */
  private static List<Gang> othersThanTargets(List<Request> members, Collection<Gang> running) {
    Set<String> targets = new HashSet<>();
    members.forEach(member -> targets.add(member.sameNodeAs()));
    List<Gang> others = new ArrayList<>(running);
    others.removeIf(
        gang -> gang.members().stream().anyMatch(member -> targets.contains(member.name())));
    return others;
  }

  private Optional<Set<Integer>> nodesWithout(
      List<Gang> order, int ended, List<Request> members, Terms terms, IntPredicate allowed) {
    List<Placement> taken = new ArrayList<>();
    order.subList(0, ended).forEach(gang -> taken.addAll(gang.placements()));
    taken.forEach(fleet::undo);
    Optional<List<Placement>> placed = trial.place(members, terms.closeness(), allowed);
    placed.ifPresent(trial::undo);
    restore(taken);
    return placed.map(
        list -> {
          Set<Integer> nodes = new HashSet<>();
          list.forEach(placement -> nodes.add(placement.node()));
          return nodes;
        });
  }

  private void restore(List<Placement> taken) {
    for (Placement placement : taken) {
      if (!fleet.restore(placement)) {
        throw new IllegalStateException("no room for what was there: " + placement);
      }
    }
  }

  /**
   * {@return the gang and all complete gangs that must share its nodes; empty if it cannot be
   * tried, because a member or a request that a member depends on is missing}
   */
  List<Gang> bundle(Gang gang, List<Gang> dependents, Set<String> running) {
    List<Gang> bundle = new ArrayList<>(List.of(gang));
    // A gang that depends on a later one of the list is found in another pass.
    for (int size = 0; size < bundle.size(); ) {
      size = bundle.size();
      for (Gang other : dependents) {
        if (other.isComplete()
            && !running.contains(other.name())
            && !bundle.contains(other)
            && bundle.stream().anyMatch(other::dependsOn)) {
          bundle.add(other);
        }
      }
    }
    Set<String> names = new HashSet<>();
    bundle.forEach(one -> one.members().forEach(member -> names.add(member.name())));
    boolean isReady =
        gang.isComplete()
            && bundle.stream()
                .flatMap(one -> one.members().stream())
                .map(Request::sameNodeAs)
                .allMatch(
                    name ->
                        name.isEmpty()
                            || names.contains(name)
                            || fleet.placement(name).isPresent());
    return isReady ? bundle : List.of();
  }

  /**
   * {@return the placements of requests in the room that gangs leave, and without these gangs;
   * empty if they do not fit, and then nothing has changed}
   */
  Optional<List<Placement>> instead(
      List<Gang> leaving, List<Request> members, Terms terms, IntPredicate allowed) {
    List<Placement> taken = leaving.stream().flatMap(gang -> gang.placements().stream()).toList();
    taken.forEach(fleet::undo);
    Optional<List<Placement>> placed = trial.place(members, terms.closeness(), allowed);
    if (placed.isEmpty()) {
      restore(taken);
    }
    return placed;
  }

  /** A placed gang, and the gangs evicted for it. */
  record Eviction(List<Placement> placed, List<Gang> victims) {}

  /**
   * {@return the placed gang, and the offline gangs that were evicted for it; empty if the gang
   * would not fit even without any of them, and then nothing has changed}
   */
  Optional<Eviction> evictFor(List<Request> members, Terms terms, Collection<Gang> running) {
    List<Gang> offline = othersThanTargets(members, running);
    offline.removeIf(gang -> gang.terms().preemptionClass() != PreemptionClass.OFFLINE);
    if (offline.isEmpty()
        || nodesWithout(offline, offline.size(), members, terms, FleetQueue.ANY).isEmpty()) {
      return Optional.empty();
    }
    // The youngest first: they have the least work to lose.
    offline.sort(Comparator.comparingLong(Gang::number).reversed());
    int low = 1;
    int high = offline.size();
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (nodesWithout(offline, middle, members, terms, FleetQueue.ANY).isPresent()) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    List<Gang> victims = new ArrayList<>(offline.subList(0, high));
    victims.forEach(gang -> gang.placements().forEach(fleet::undo));
    Optional<List<Placement>> placed = trial.place(members, terms.closeness(), FleetQueue.ANY);
    if (placed.isEmpty()) {
      victims.forEach(gang -> restore(gang.placements()));
      return Optional.empty();
    }
    // Keep gangs that are not in the way, the oldest first.
    for (int i = victims.size() - 1; i >= 0; i--) {
      if (canStay(victims.get(i))) {
        victims.remove(i);
      }
    }
    return Optional.of(new Eviction(placed.get(), victims));
  }

  private boolean canStay(Gang gang) {
    List<Placement> back = new ArrayList<>();
    for (Placement placement : gang.placements()) {
      if (!fleet.restore(placement)) {
        back.forEach(fleet::undo);
        return false;
      }
      back.add(placement);
    }
    return true;
  }
}
