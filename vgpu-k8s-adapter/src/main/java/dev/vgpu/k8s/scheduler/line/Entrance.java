package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.names.PodRequests;
import dev.vgpu.k8s.scheduler.line.Roll.Unserved;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How pods join the line, and which gangs they form. Confined to its {@link PodLine}. */
final class Entrance {
  private static final Logger LOG = LoggerFactory.getLogger(Entrance.class);

  private final Roll roll;
  private final SharedNodes shared;
  final UnsizedGangs unsized = new UnsizedGangs();

  Entrance(Roll roll, SharedNodes shared) {
    this.roll = roll;
    this.shared = shared;
  }

  /**
   * Pods that a node can host now join the line. Nobody else wakes them: kube-scheduler may have
   * tried them before this line knew of the node.
   */
  void joinServed() {
    for (Unserved one : List.copyOf(roll.unserved.values())) {
      Optional<PodRequest> request = Roll.requestOf(one.pod());
      if (request.isEmpty() || roll.lack(one.pod(), request.get()).isPresent()) {
        continue;
      }
      try {
        Entry ignored = enter(one.pod(), request, one.size());
      } catch (PodRefusedException | IllegalArgumentException e) {
        LOG.warn(
            "{} fits a node now, and is refused: {}",
            one.pod().getMetadata().getName(),
            e.getMessage());
      }
    }
  }

  /** A pod waits outside the line, until a node can host it, or the size of its gang is known. */
  void waitsOutside(Pod pod, int size) {
    String uid = pod.getMetadata().getUid();
    if (size > 0) {
      roll.unserved.put(uid, new Unserved(pod, size));
      return;
    }
    Roll.requestOf(pod)
        .flatMap(PodRequest::gang)
        .ifPresent(one -> unsized.add(Roll.gangName(pod, one.name()), pod));
  }

  /** A pod waits, if it is not in line already. The size of its gang may have to be looked up. */
  void waits(Pod pod) {
    Optional<PodRequest> request = Roll.requestOf(pod);
    int size = request.flatMap(PodRequest::gang).map(GangName::size).orElse(1);
    if (request.isPresent() && !roll.entries.containsKey(pod.getMetadata().getUid())) {
      waitsOutside(pod, size);
    }
  }

  /**
   * {@return a pod in line that requests something else now} Its owner may change that until it is
   * being bound.
   */
  Optional<Entry> changed(Pod pod) {
    String uid = pod.getMetadata().getUid();
    return Optional.ofNullable(roll.crewOf(uid))
        .filter(crew -> !crew.isGoing)
        .map(crew -> roll.entry(uid))
        .filter(entry -> !entry.isBound && !entry.request().equals(Roll.requestOf(pod)));
  }

  /**
   * {@return whether a pod that is not in line may join it now, because its owner has changed it}
   *
   * @param isOther whether it has left the line because it requests something else
   */
  boolean sees(Pod pod, boolean isOther) {
    String uid = pod.getMetadata().getUid();
    Unserved unserved = roll.unserved.get(uid);
    Optional<Pod> before =
        Optional.ofNullable(unserved).map(Unserved::pod).or(() -> unsized.find(uid));
    if (isOther
        || before.filter(one -> !Roll.requestOf(one).equals(Roll.requestOf(pod))).isPresent()) {
      forget(uid);
      waits(pod);
      return true;
    }
    if (unserved != null) {
      roll.unserved.replace(uid, new Unserved(pod, unserved.size()));
    }
    return false;
  }

  /** {@return whether a pod waits now because kube-scheduler had no answer about it} */
  boolean waitsUnanswered(Pod pod) {
    String uid = pod.getMetadata().getUid();
    boolean isKnown = roll.entries.containsKey(uid) || roll.unserved.containsKey(uid);
    if (isKnown || !Restart.isUnanswered(pod)) {
      return false;
    }
    waits(pod);
    return true;
  }

  /** A pod that is not in line will not join it. */
  void forget(String uid) {
    roll.unserved.remove(uid);
    unsized.remove(uid);
  }

  /** {@return why a pod is not in line; empty if it is now} */
  Optional<Answer> admit(Pod pod, int size) {
    try {
      Optional<PodRequest> request = PodRequests.of(pod);
      if (request.isEmpty()) {
        return Optional.of(Answer.any());
      }
      String uid = pod.getMetadata().getUid();
      if (size < 1) {
        waitsOutside(pod, size);
        return Optional.of(
            Answer.none("the size of its gang is not known: its group object is not there"));
      }
      unsized.remove(uid);
      Optional<String> lack =
          roll.entries.containsKey(uid) ? Optional.empty() : roll.lack(pod, request.get());
      if (lack.isPresent()) {
        waitsOutside(pod, size);
        return lack.map(Answer::none);
      }
      Entry ignored = enter(pod, request, size);
      return Optional.empty();
    } catch (PodRefusedException | IllegalArgumentException e) {
      return Optional.of(Answer.none("refused: " + e.getMessage()));
    }
  }

  /**
   * {@return the pod's entry; an unknown pod joins the line}
   *
   * @param size the current size of its gang, or 1: a pod that waits with a gang of another size
   *     leaves that, and joins the line anew
   */
  Entry enter(Pod pod, Optional<PodRequest> request, int size) {
    String uid = pod.getMetadata().getUid();
    roll.unserved.remove(uid);
    Entry known = roll.entries.get(uid);
    Crew crew = known == null ? null : roll.crews.get(known.crew);
    if (known == null || crew == null) {
      return join(pod, request, size);
    }
    if (crew.isPlaced || crew.terms().size() == size || crew.name().equals(uid)) {
      return known;
    }
    // Of a group object, all have the same size. Otherwise, each pod says its own.
    boolean isGroups = request.flatMap(PodRequest::gang).filter(one -> one.size() == 0).isPresent();
    List<Entry> moving =
        isGroups ? crew.members.stream().map(roll::entry).toList() : List.of(known);
    moving.forEach(one -> leave(crew, one.uid()));
    moving.forEach(one -> roll.entries.remove(one.uid()));
    for (Entry one : moving) {
      if (one != known) {
        Entry ignored = join(one.pod(), one.request(), size);
      }
    }
    return join(pod, request, size);
  }

  /** A pod without a place leaves its crew. */
  void leave(Crew crew, String uid) {
    roll.view.queue().leave(crew.name(), uid);
    crew.members.remove(uid);
    if (crew.members.isEmpty()) {
      roll.crews.remove(crew.name());
      crew.go.complete("the pod has gone");
    }
  }

  private Entry join(Pod pod, Optional<PodRequest> request, int size) {
    Entry entry = new Entry(pod, request);
    join(entry, size);
    roll.entries.put(entry.uid(), entry);
    roll.recent.add(entry);
    return entry;
  }

  private void join(Entry entry, int size) {
    PodRequest request = entry.request().orElseThrow();
    Optional<String> gang = request.gang().map(one -> Roll.gangName(entry.pod(), one.name()));
    String name = gang.map(one -> crewFor(one, size)).orElse(entry.uid());
    Crew crew = roll.crews.get(name);
    int wanted = size;
    boolean isLate = crew == null && gang.filter(roll::runs).isPresent();
    if (isLate || (crew != null && (crew.isPlaced || crew.members.size() == crew.terms().size()))) {
      // The gang has all the pods that it needs: an additional one is placed by itself.
      name = entry.uid();
      crew = null;
      wanted = 1;
    }
    shared.join(entry, name);
    Terms terms =
        crew == null
            ? Terms.of(name, wanted, request.preemptionClass(), request.runS())
            : crew.terms();
    roll.view.queue().add(terms, entry.onServing(roll.view));
    Crew joined = crew == null ? new Crew(terms) : crew;
    roll.crews.put(name, joined);
    joined.members.add(entry.uid());
    entry.crew = name;
  }

  /**
   * {@return the name of the crew that a gang's pods of this size form} Pods with another size, and
   * pods that are all ending, are other crews: the gang was made anew.
   */
  private String crewFor(String gang, int size) {
    String other = Roll.ofSize(gang, size);
    List<String> names = List.of(gang, other, Roll.ofSize(other, size));
    Predicate<String> isIts =
        name -> {
          Crew crew = roll.crews.get(name);
          return crew != null && crew.terms().size() == size && !isEnding(crew);
        };
    return names.stream()
        .filter(isIts)
        .findFirst()
        .or(() -> names.stream().filter(name -> !roll.crews.containsKey(name)).findFirst())
        .orElse(other);
  }

  private boolean isEnding(Crew crew) {
    return crew.members.stream().allMatch(uid -> roll.entry(uid).isEnding());
  }
}
