package dev.vgpu.k8s.scheduler.line;

import dev.vgpu.fleet.gang.Terms;
import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.names.PodRequest;
import dev.vgpu.k8s.scheduler.claim.ClaimConditions;
import dev.vgpu.k8s.scheduler.claim.KnownPods;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodCondition;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Reads the state that pods carry over a restart. Their annotations are untrusted: contradictory
 * ones are ignored.
 */
final class Restart {
  /**
   * What kube-scheduler says of a question without an answer: Post "URL/filter": … or Post
   * "URL/bind": …, or, if nobody leads yet, failed filter with extender at URL …, code 503.
   */
  private static final List<String> UNANSWERED =
      List.of("/filter\": ", "/bind\": ", "failed filter with extender");

  private Restart() {}

  /**
   * Reads the pods. A gang counts as placed if each of its members has a recorded place. Otherwise
   * its unbound members wait again.
   */
  static void read(
      Collection<Pod> pods,
      Function<Pod, Optional<PodRequest>> request,
      Map<String, Entry> entries,
      Map<String, Crew> crews) {
    Map<String, List<Entry>> byCrew = new LinkedHashMap<>();
    for (Pod pod : pods) {
      if (!KnownPods.isAlive(pod)) {
        continue;
      }
      Entry entry = new Entry(pod, request.apply(pod));
      String node = pod.getSpec().getNodeName();
      entry.isBound = node != null && !node.isEmpty();
      entry.place = place(pod, node);
      boolean isTold = entry.place != null && isOwn(entry, written(pod));
      if (entry.isBound || isTold) {
        entries.put(entry.uid(), entry);
      }
      if (isTold) {
        byCrew.computeIfAbsent(written(pod).gang(), key -> new ArrayList<>()).add(entry);
      }
    }
    byCrew.forEach((name, members) -> gather(name, members, entries, crews));
  }

  /**
   * {@return the pods that an earlier process told to wait, or did not answer about, the oldest
   * first} kube-scheduler has written the reason into the pod, and does not try it again by itself.
   */
  static List<Pod> waiting(Collection<Pod> pods) {
    return pods.stream()
        .filter(pod -> isLeft(pod, List.of(Answer.MARK)) || isUnanswered(pod))
        .sorted(
            Comparator.comparing(
                pod ->
                    ClaimConditions.instant(pod.getMetadata().getCreationTimestamp())
                        .orElse(Instant.MAX)))
        .toList();
  }

  /**
   * {@return whether nobody has answered kube-scheduler's question about a pod} Before Kubernetes
   * 1.32, it then tries the pod again after a change in the cluster, or after five minutes.
   */
  static boolean isUnanswered(Pod pod) {
    return isLeft(pod, UNANSWERED);
  }

  private static boolean isLeft(Pod pod, List<String> messages) {
    List<PodCondition> all = pod.getStatus() == null ? null : pod.getStatus().getConditions();
    return all != null
        && KnownPods.isAlive(pod)
        && KnownPods.isTried(pod)
        && !KnownPods.isBound(pod)
        && pod.getMetadata().getDeletionTimestamp() == null
        && all.stream()
            .filter(one -> "PodScheduled".equals(one.getType()) && one.getMessage() != null)
            .anyMatch(one -> messages.stream().anyMatch(one.getMessage()::contains));
  }

  private static Place.Written written(Pod pod) {
    return Place.of(pod).orElseThrow();
  }

  /** {@return the place recorded in a pod; null if none, or if the pod runs on another node} */
  static @Nullable Place place(Pod pod, @Nullable String node) {
    return Place.of(pod)
        .map(Place.Written::place)
        .filter(one -> node == null || node.isEmpty() || one.node().equals(node))
        .orElse(null);
  }

  private static boolean isOwn(Entry entry, Place.Written written) {
    String gang =
        entry
            .request()
            .flatMap(PodRequest::gang)
            .map(GangName::name)
            .map(name -> Roll.gangName(entry.pod(), name))
            .orElse("");
    return entry.request().isPresent()
        && (written.gang().equals(entry.uid())
            || written.gang().equals(gang)
            || Roll.withoutSize(written.gang()).equals(gang));
  }

  private static void gather(
      String name, List<Entry> members, Map<String, Entry> entries, Map<String, Crew> crews) {
    int size = written(members.get(0).pod()).size();
    boolean isWhole =
        members.size() == size
            && members.stream().allMatch(one -> written(one.pod()).size() == size);
    if (!isWhole) {
      members.stream().filter(one -> !one.isBound).forEach(one -> entries.remove(one.uid()));
      return;
    }
    PodRequest request = members.get(0).request().orElseThrow();
    Crew crew = new Crew(Terms.of(name, size, request.preemptionClass(), request.runS()));
    for (Entry member : members) {
      crew.members.add(member.uid());
      crew.written.add(member.uid());
      crew.isGoing |= member.isBound;
      member.crew = name;
    }
    crew.isPlaced = true;
    if (crew.isGoing) {
      crew.go.complete("");
    }
    crews.put(name, crew);
  }
}
