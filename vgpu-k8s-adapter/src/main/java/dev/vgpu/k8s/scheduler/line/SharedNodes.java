package dev.vgpu.k8s.scheduler.line;

import static java.util.Objects.requireNonNull;

import dev.vgpu.fleet.model.Placement;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequests;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Pods that must share the node of another pod, which they name. Such a pod is bound only once the
 * other one is, unless both are of one gang. Confined to its {@link PodLine}.
 */
final class SharedNodes {
  private final Roll roll;

  /** Whether any pod has named another one; otherwise there is nothing to look for. */
  private boolean isUsed;

  SharedNodes(Roll roll) {
    this.roll = roll;
  }

  /** The known pods are others now. */
  void begin() {
    isUsed = roll.entries.values().stream().anyMatch(SharedNodes::isDependent);
  }

  private static boolean isDependent(Entry entry) {
    return !entry.sharesWith().isEmpty();
  }

  /**
   * A pod joins a crew.
   *
   * @throws PodRefusedException if each of several pods or gangs would wait for another one of them
   */
  void join(Entry entry, String crew) {
    isUsed |= isDependent(entry);
    if (!isUsed) {
      return;
    }
    Map<String, Entry> names = names();
    names.put(entry.fullName(), entry);
    Set<String> seen = new HashSet<>();
    Entry at = entry;
    while (seen.add(at.uid()) && !isSettled(at) && names.containsKey(at.sharesWith())) {
      at = requireNonNull(names.get(at.sharesWith()));
      if (at == entry) {
        throw cycle(entry, "pods wait for each other");
      }
    }
    Set<String> reached = new HashSet<>(Set.of(crew));
    Deque<String> next = new ArrayDeque<>(reached);
    while (!next.isEmpty()) {
      String name = next.remove();
      Crew known = roll.crews.get(name);
      Stream<Entry> members = known == null ? Stream.of() : known.members.stream().map(roll::entry);
      List<String> others =
          Stream.concat(members, name.equals(crew) ? Stream.of(entry) : Stream.of())
              .filter(one -> !isSettled(one))
              .map(one -> names.get(one.sharesWith()))
              .filter(Objects::nonNull)
              .map(one -> one == entry ? crew : one.crew)
              .filter(one -> !one.equals(name))
              .toList();
      if (others.contains(crew)) {
        throw cycle(entry, "its gang and another one wait for each other; put all pods into one");
      }
      others.stream().filter(reached::add).forEach(next::add);
    }
  }

  private static PodRefusedException cycle(Entry entry, String why) {
    return new PodRefusedException(
        PodRequests.SAME_NODE
            + ": "
            + why
            + ": pod="
            + entry.fullName()
            + " asked="
            + (isDependent(entry) ? entry.sharesWith() : "none"));
  }

  /** {@return whether a pod's node is final, so that it waits for no other pod} */
  private boolean isSettled(Entry entry) {
    Crew crew = roll.crews.get(entry.crew);
    return entry.isBound || (crew != null && crew.isGoing);
  }

  private Map<String, Entry> names() {
    Map<String, Entry> names = new HashMap<>();
    roll.entries.values().forEach(entry -> names.put(entry.fullName(), entry));
    return names;
  }

  private Optional<Entry> target(Entry entry) {
    // The youngest one: the event that an older one of this name has gone may come late.
    return roll.entries.values().stream()
        .filter(one -> one.fullName().equals(entry.sharesWith()))
        .reduce((older, younger) -> younger);
  }

  /** Tells the queue of which known pods the waiting ones must share the node. */
  void resolve() {
    if (!isUsed) {
      return;
    }
    Map<String, Entry> names = names();
    for (String crew : roll.view.queue().waiting()) {
      for (Entry entry : dependents(requireNonNull(roll.crews.get(crew), crew))) {
        Entry target = names.get(entry.sharesWith());
        String now = target == null ? entry.sharesWith() : target.uid();
        if (!now.equals(entry.sameNodeAs)) {
          entry.sameNodeAs = now;
          roll.view.queue().change(crew, entry.onServing(roll.view));
        }
      }
    }
  }

  private List<Entry> dependents(Crew crew) {
    return crew.members.stream().map(roll::entry).filter(SharedNodes::isDependent).toList();
  }

  /** {@return the crews that have places, yet not all on the nodes of the pods that they name} */
  List<Crew> apart() {
    List<Crew> apart = new ArrayList<>();
    for (Crew crew : isUsed ? roll.crews.values() : List.<Crew>of()) {
      if (crew.isPlaced
          && !crew.isGoing
          && !dependents(crew).stream().allMatch(one -> isBeside(one, target(one)))) {
        apart.add(crew);
      }
    }
    return apart;
  }

  private boolean isBeside(Entry entry, Optional<Entry> target) {
    Optional<Integer> node = target.flatMap(one -> node(one.uid()));
    return node.isPresent() && node.equals(node(entry.uid()));
  }

  private Optional<Integer> node(String uid) {
    return roll.view.fleet().placement(uid).map(Placement::node);
  }

  /** {@return whether the pods that a crew's pods name are bound, to the same nodes} */
  boolean mayGo(Crew crew) {
    return crew.isGoing
        || !isUsed
        || dependents(crew).stream()
            .allMatch(
                one -> {
                  Optional<Entry> target = target(one);
                  return isBeside(one, target)
                      && target.filter(t -> t.isBound || t.crew.equals(crew.name())).isPresent();
                });
  }

  /** {@return the crews that may wait for a pod to be bound} */
  Collection<Crew> waitingFor(Entry entry) {
    return isUsed
        ? roll.crews.values().stream()
            .filter(crew -> crew.isPlaced && !crew.isGoing)
            .filter(
                crew ->
                    dependents(crew).stream()
                        .anyMatch(one -> one.sharesWith().equals(entry.fullName())))
            .toList()
        : List.of();
  }

  /** {@return which other pod without a node a crew waits for; empty if for none} */
  Optional<String> missing(Crew crew) {
    for (Entry entry : named(crew)) {
      Optional<Entry> target = target(entry);
      if (target.flatMap(one -> node(one.uid())).isEmpty()) {
        return Optional.of(
            shares(entry)
                + (target.isPresent() ? ", which has none yet" : ", which neither runs nor waits"));
      }
    }
    return Optional.empty();
  }

  /** {@return what beside its size limits a crew: the pods that must share its pods' nodes} */
  String limits(Crew crew) {
    if (!isUsed) {
      return "";
    }
    List<String> all = new ArrayList<>();
    for (Entry entry : named(crew)) {
      target(entry)
          .flatMap(one -> roll.view.place(one.uid()))
          .ifPresent(place -> all.add(shares(entry) + ", which is " + place.node()));
    }
    List<String> members = crew.members.stream().map(uid -> roll.entry(uid).fullName()).toList();
    roll.entries.values().stream()
        .filter(one -> !one.isBound && !one.crew.equals(crew.name()))
        .filter(one -> members.contains(one.sharesWith()))
        .forEach(one -> all.add("it is placed together with " + one.fullName()));
    return all.isEmpty() ? "" : "; " + String.join("; ", all);
  }

  /** {@return the pods of a crew that name a pod of another one} */
  private List<Entry> named(Crew crew) {
    return isUsed
        ? dependents(crew).stream()
            .filter(one -> target(one).filter(other -> other.crew.equals(crew.name())).isEmpty())
            .toList()
        : List.of();
  }

  private static String shares(Entry entry) {
    return entry.fullName() + " must share the node of " + entry.sharesWith();
  }
}
