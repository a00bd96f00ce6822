package dev.vgpu.k8s.scheduler;

import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.scheduler.Roll.Unserved;
import io.fabric8.kubernetes.api.model.Pod;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** How pods join the line, and which gangs they form. Confined to its {@link PodLine}. */
final class Entrance {
  private static final Logger LOG = LoggerFactory.getLogger(Entrance.class);

  private final Roll roll;
  private final SharedNodes shared;

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

  /** {@return the pod's entry; an unknown pod joins the line} */
  Entry enter(Pod pod, Optional<PodRequest> request, int size) {
    roll.unserved.remove(pod.getMetadata().getUid());
    Entry known = roll.entries.get(pod.getMetadata().getUid());
    if (known != null && roll.crews.containsKey(known.crew)) {
      return known;
    }
    Entry entry = new Entry(pod, request);
    join(entry, size);
    roll.entries.put(entry.uid(), entry);
    return entry;
  }

  private void join(Entry entry, int size) {
    PodRequest request = entry.request().orElseThrow();
    String name =
        request.gang().map(gang -> Roll.gangName(entry.pod(), gang.name())).orElse(entry.uid());
    Crew crew = roll.crews.get(name);
    int wanted = size;
    boolean isLate = crew == null && request.gang().isPresent() && roll.runs(name);
    if (isLate || (crew != null && (crew.isPlaced || crew.members.size() == crew.terms().size()))) {
      // The gang has all the pods that it needs: an additional one is placed by itself.
      name = entry.uid();
      crew = null;
      wanted = 1;
    }
    if (crew != null && crew.terms().size() != size) {
      throw new PodRefusedException(
          "a gang has one size: gang=" + name + " size=" + crew.terms().size() + " asked=" + size);
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
}
