package dev.vgpu.k8s.scheduler.line;

import io.fabric8.kubernetes.api.model.Pod;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * Pods of gangs whose group objects are not there yet, so that the sizes are not known. They are
 * not in line. Confined to its {@link PodLine}.
 */
public final class UnsizedGangs {
  /** By the gang's name; then by UID. The gang that was looked at longest ago is first. */
  private final Map<String, Map<String, Pod>> pods = new LinkedHashMap<>();

  /** Adds a pod, or replaces it. */
  public void add(String gang, Pod pod) {
    pods.computeIfAbsent(gang, key -> new LinkedHashMap<>()).put(pod.getMetadata().getUid(), pod);
  }

  /** Removes a pod, if it is here. */
  public void remove(String uid) {
    pods.values().removeIf(members -> members.remove(uid) != null && members.isEmpty());
  }

  /** {@return a pod of these, as it was added} */
  Optional<Pod> find(String uid) {
    return pods.values().stream().map(one -> one.get(uid)).filter(Objects::nonNull).findFirst();
  }

  /** {@return one pod of each of the next gangs, in turns} */
  public List<Pod> next(int most) {
    List<Pod> next = new ArrayList<>();
    for (String gang : pods.keySet().stream().limit(most).toList()) {
      Map<String, Pod> members = pods.remove(gang);
      pods.put(gang, members);
      next.add(members.values().iterator().next());
    }
    return next;
  }

  /** {@return the pods of a gang, which are not kept any more} */
  public Collection<Pod> take(String gang) {
    Map<String, Pod> members = pods.remove(gang);
    return members == null ? List.of() : members.values();
  }

  void clear() {
    pods.clear();
  }
}
