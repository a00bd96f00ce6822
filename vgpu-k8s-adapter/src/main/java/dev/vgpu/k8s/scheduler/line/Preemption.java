package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.gang.Decision;
import io.fabric8.kubernetes.api.model.Pod;
import java.time.Instant;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * Preemption by kube-scheduler, which knows priorities, but not what is free on GPUs. It proposes
 * victims; a pod whose crew fits once they have ended gets its place at once, and the victims count
 * as ended. So nobody else gets the room that they leave. Confined to its {@link PodLine}.
 */
final class Preemption {
  /** How long kube-scheduler may take to delete a victim. It does so right after the answer. */
  static final double DUE_S = 30;

  private final Roll roll;

  /** By UID: until when a victim must have been told to end. */
  private final Map<String, Double> due = new HashMap<>();

  Preemption(Roll roll) {
    this.roll = roll;
  }

  /** Nobody is known to be evicted. */
  void begin() {
    due.clear();
  }

  /**
   * {@return the node on which a pod has or gets its place, if victims there end; empty if on none}
   *
   * @param isNew whether it has just joined the line
   * @param all what kube-scheduler proposes
   * @param placed is told which crews get their places, in the room of the victims
   */
  Optional<String> node(
      Entry entry, boolean isNew, List<Candidate> all, double nowS, Consumer<Crew> placed) {
    if (isNew) { // kube-scheduler has found no node for it, or it would have been filtered
      entry.listed(roll.view, Set.of());
      roll.view.queue().change(entry.crew, entry.onServing(roll.view));
    }
    Crew crew = roll.crew(entry.crew);
    Place place = crew.isPlaced ? entry.place : null;
    for (Candidate one : permitted(entry.pod(), all)) {
      List<Decision> started = place == null ? start(entry, one, nowS) : List.of();
      started.forEach(start -> placed.accept(roll.crew(start.gang())));
      if (!started.isEmpty() || (place != null && place.node().equals(one.node()))) {
        crew.askedS = nowS;
        return Optional.of(one.node());
      }
    }
    return Optional.empty();
  }

  /** {@return the candidates whose victims may be evicted for a pod, the best first} */
  private List<Candidate> permitted(Pod pod, List<Candidate> all) {
    boolean isNever = "Never".equals(pod.getSpec().getPreemptionPolicy());
    return all.stream()
        .filter(one -> !isNever && !one.victims().isEmpty() && isPermitted(pod, one))
        .sorted(order())
        .toList();
  }

  private boolean isPermitted(Pod pod, Candidate candidate) {
    return candidate.victims().stream()
        .allMatch(
            uid -> {
              Entry victim = roll.entries.get(uid);
              Crew crew = victim == null ? null : roll.crews.get(victim.crew);
              return victim != null
                  && victim.isBound
                  && candidate.node().equals(victim.pod().getSpec().getNodeName())
                  && priority(victim.pod()) < priority(pod)
                  && (crew == null || candidate.victims().containsAll(crew.members));
            });
  }

  /** By kube-scheduler's rules: the line answers one node, so it has to choose as that would. */
  private Comparator<Candidate> order() {
    return Comparator.comparingLong(Candidate::violations)
        .thenComparingInt(this::highest)
        .thenComparingLong(
            one ->
                pods(one).stream().mapToLong(pod -> priority(pod) - (long) Integer.MIN_VALUE).sum())
        .thenComparingInt(one -> one.victims().size())
        .thenComparing(this::start, Comparator.reverseOrder());
  }

  private int highest(Candidate candidate) {
    return pods(candidate).stream().mapToInt(Preemption::priority).max().orElseThrow();
  }

  /** {@return when the first of the victims with the highest priority was started} */
  private Instant start(Candidate candidate) {
    int highest = highest(candidate);
    return candidate.victims().stream()
        .map(roll::entry)
        .filter(one -> priority(one.pod()) == highest)
        .map(Entry::born)
        .min(Comparator.naturalOrder())
        .orElseThrow();
  }

  private List<Pod> pods(Candidate candidate) {
    return candidate.victims().stream().map(roll::entry).map(Entry::pod).toList();
  }

  private static int priority(Pod pod) {
    return Optional.ofNullable(pod.getSpec().getPriority()).orElse(0);
  }

  /**
   * Starts a pod's crew without the victims, that pod on the candidate's node.
   *
   * @return the crews that start; empty if they do not fit, and then nothing has changed
   */
  private List<Decision> start(Entry entry, Candidate candidate, double nowS) {
    boolean takes =
        entry
            .request()
            .filter(one -> roll.view.taking(entry.pod(), one).contains(candidate.node()))
            .isPresent();
    if (!takes) {
      return List.of();
    }
    Set<Crew> leaving =
        candidate.victims().stream()
            .map(roll::crewOf)
            .filter(Objects::nonNull)
            .collect(Collectors.toSet());
    List<Decision> started =
        roll.view
            .queue()
            .startInstead(
                entry.crew,
                entry.onFleet(roll.view, Set.of(candidate.node())),
                leaving.stream().map(Crew::name).collect(Collectors.toSet()),
                isAhead(entry.pod()),
                nowS);
    if (!started.isEmpty()) {
      leaving.forEach(crew -> crew.isLeaving = true);
      candidate.victims().forEach(uid -> due.put(uid, nowS + DUE_S));
    }
    return started;
  }

  /** {@return whether nodes that are held for another one may be used: its priority is lower} */
  private boolean isAhead(Pod pod) {
    return roll.view
        .queue()
        .reservation()
        .map(held -> roll.crew(held.gang()).members)
        .filter(
            held -> held.stream().allMatch(uid -> priority(roll.entry(uid).pod()) < priority(pod)))
        .isPresent();
  }

  /**
   * Victims that kube-scheduler did not evict stay, and their places are not free.
   *
   * @return whether there were any; the fleet was rebuilt then
   */
  boolean endOverdue(double nowS) {
    due.keySet().removeIf(uid -> !roll.entries.containsKey(uid) || roll.entry(uid).isEnding());
    Set<String> staying =
        due.entrySet().stream()
            .filter(one -> one.getValue() < nowS)
            .map(Map.Entry::getKey)
            .collect(Collectors.toSet());
    if (staying.isEmpty()) {
      return false;
    }
    due.keySet().removeAll(staying);
    for (Crew crew : roll.crews.values()) {
      crew.isLeaving &= Collections.disjoint(crew.members, staying);
      if (!crew.isGoing && !Collections.disjoint(crew.inTheWay, staying)) {
        crew.back("kube-scheduler did not evict those in its way");
      }
    }
    roll.rebuild(nowS);
    return true;
  }
}
