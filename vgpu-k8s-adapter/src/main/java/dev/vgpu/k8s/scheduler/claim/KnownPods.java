package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequests;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaimConsumerReference;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;

/**
 * The pods that have not ended, and what kube-scheduler and their gangs make of them.
 *
 * @param byUid by UID
 * @param names the names of their gangs, by UID; the UID of a pod without one
 * @param born when the first pod of each gang was created; pods that are ending do not count
 */
public record KnownPods(
    Map<String, Pod> byUid, Map<String, String> names, Map<String, Instant> born) {
  /** {@return those of some pods that have not ended} */
  public static KnownPods of(Collection<Pod> pods) {
    KnownPods known = new KnownPods(new LinkedHashMap<>(), new HashMap<>(), new HashMap<>());
    for (Pod pod : pods) {
      if (isAlive(pod)) {
        String name = gangOf(pod);
        known.byUid.put(uid(pod), pod);
        known.names.put(uid(pod), name);
        ClaimConditions.instant(pod.getMetadata().getCreationTimestamp())
            .filter(at -> !isEnding(pod))
            .ifPresent(at -> known.born.merge(name, at, (a, b) -> a.isBefore(b) ? a : b));
      }
    }
    return known;
  }

  String name(Pod pod) {
    return names.getOrDefault(uid(pod), uid(pod));
  }

  /** {@return the place in line of a pod's gang} */
  ClaimReservation.Age age(Pod pod) {
    return new ClaimReservation.Age(born.getOrDefault(name(pod), Instant.MAX), name(pod));
  }

  /** {@return when the last pod with these claims ends at the latest} */
  Instant end(Collection<ResourceClaim> claims, Instant now) {
    Instant end = now;
    for (ResourceClaim claim : claims) {
      List<Pod> pods = consumers(claim);
      boolean isKnown = !pods.isEmpty() && pods.size() == claim.getStatus().getReservedFor().size();
      for (Pod pod : pods) {
        Instant last = end(pod, now);
        end = last.isAfter(end) ? last : end;
      }
      end = isKnown ? end : ClaimReservation.NEVER;
    }
    return end;
  }

  /** {@return when a pod ends at the latest, or {@link ClaimReservation#NEVER}} */
  static Instant end(Pod pod, Instant now) {
    Long deadline = pod.getSpec().getActiveDeadlineSeconds();
    if (deadline == null) {
      return ClaimReservation.NEVER;
    }
    Optional<Instant> start =
        Optional.ofNullable(pod.getStatus())
            .flatMap(one -> ClaimConditions.instant(one.getStartTime()));
    return start.orElse(now).plusSeconds(deadline);
  }

  /** {@return the pods for which a claim is reserved, as far as they are known} */
  List<Pod> consumers(ResourceClaim claim) {
    List<ResourceClaimConsumerReference> all = claim.getStatus().getReservedFor();
    return all == null
        ? List.of()
        : all.stream().map(one -> byUid.get(one.getUid())).filter(Objects::nonNull).toList();
  }

  /** {@return the names of a pod's claims, with their namespace; without those not made yet} */
  public static List<String> claimNames(Pod pod) {
    List<String> names = new ArrayList<>();
    if (pod.getSpec().getResourceClaims() != null) {
      pod.getSpec().getResourceClaims().forEach(one -> names.add(one.getResourceClaimName()));
    }
    if (pod.getStatus() != null && pod.getStatus().getResourceClaimStatuses() != null) {
      pod.getStatus()
          .getResourceClaimStatuses()
          .forEach(one -> names.add(one.getResourceClaimName()));
    }
    return names.stream()
        .filter(Objects::nonNull)
        .map(name -> pod.getMetadata().getNamespace() + "/" + name)
        .toList();
  }

  /** {@return the name of a pod's gang, or the UID of a pod without one} */
  private static String gangOf(Pod pod) {
    try {
      return PodRequests.gang(pod)
          .map(one -> pod.getMetadata().getNamespace() + "/" + one.name())
          .orElse(uid(pod));
    } catch (PodRefusedException e) {
      return uid(pod);
    }
  }

  /** {@return whether a pod has a node} */
  public static boolean isBound(Pod pod) {
    String node = pod.getSpec().getNodeName();
    return node != null && !node.isEmpty();
  }

  /** {@return whether a pod has not ended} */
  public static boolean isAlive(Pod pod) {
    String phase = pod.getStatus() == null ? "" : pod.getStatus().getPhase();
    return !"Succeeded".equals(phase) && !"Failed".equals(phase);
  }

  /** {@return whether a pod has been told to end} It has its devices until it is gone. */
  static boolean isEnding(Pod pod) {
    return pod.getMetadata().getDeletionTimestamp() != null;
  }

  /** {@return the UID of a pod} */
  static String uid(Pod pod) {
    return pod.getMetadata().getUid();
  }

  /** {@return whether kube-scheduler tries a pod, or has bound it} */
  public static boolean isTried(Pod pod) {
    return pod.getSpec().getSchedulingGates() == null
        || pod.getSpec().getSchedulingGates().isEmpty();
  }
}
