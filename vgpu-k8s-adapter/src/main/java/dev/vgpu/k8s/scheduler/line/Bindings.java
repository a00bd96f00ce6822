package dev.vgpu.k8s.scheduler.line;

import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Which crews are being bound, although the bindings have failed. Such a crew must be free to take
 * other nodes: kube-scheduler may never list its nodes again. Confined to its {@link PodLine}.
 */
public final class Bindings {
  private final Roll roll;

  Bindings(Roll roll) {
    this.roll = roll;
  }

  /**
   * A crew that is being bound, although no member is known to be bound.
   *
   * @param members the members; the API knows whether they are bound
   * @param bindings how many writes of their bindings had begun by then
   */
  public record Doubt(List<Pod> members, int bindings) {}

  /** A pod's binding is written next. */
  void begin(String uid, Crew crew) {
    crew.binding.add(uid);
    crew.maybeBound.add(uid);
    crew.bindings++;
  }

  /** A pod's binding has succeeded, was refused, or nobody knows. */
  void end(String uid, boolean isRefused) {
    Crew crew = roll.crewOf(uid);
    if (crew == null) {
      return;
    }
    crew.binding.remove(uid);
    if (isRefused) {
      crew.maybeBound.remove(uid);
      if (isStuck(crew) && crew.members.stream().noneMatch(crew.maybeBound::contains)) {
        crew.stop();
      }
    }
  }

  /** {@return whether a crew is being bound, and no member is known to be bound} */
  private boolean isStuck(Crew crew) {
    return crew.isGoing
        && !crew.isLeaving
        && crew.binding.isEmpty()
        && crew.members.stream().noneMatch(uid -> roll.entry(uid).isBound);
  }

  /** {@return a doubt whether a pod's crew is bound, if its own node may not be taken any more} */
  Optional<Doubt> doubt(String uid, Set<String> listed) {
    Entry entry = roll.entries.get(uid);
    Crew crew = roll.crewOf(uid);
    if (entry == null
        || crew == null
        || entry.place == null
        || listed.contains(entry.place.node())
        || !isStuck(crew)) {
      return Optional.empty();
    }
    List<Pod> members = crew.members.stream().map(one -> roll.entry(one).pod()).toList();
    return Optional.of(new Doubt(members, crew.bindings));
  }

  /** No member of a pod's crew was bound when the API was asked about it. */
  void notBound(String uid, Doubt doubt) {
    Crew crew = roll.crewOf(uid);
    if (crew != null && isStuck(crew) && crew.bindings == doubt.bindings) {
      crew.stop();
    }
  }
}
