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
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Stream;

/**
 * The pods that have not ended, and what kube-scheduler and their gangs make of them.
 *
 * @param byUid by UID
 * @param names the names of their gangs, by UID; the UID of a pod without one
 * @param born when the first pod of each gang was created; pods that are ending do not count
 * @param ended the UIDs of pods that have ended, and for which claims are still reserved
 */
public record KnownPods(
    Map<String, Pod> byUid,
    Map<String, String> names,
    Map<String, Instant> born,
    Set<String> ended) {
  static final KnownPods NONE = new KnownPods(Map.of(), Map.of(), Map.of(), Set.of());

  /** {@return those of some pods that have not ended} */
  public static KnownPods of(Collection<Pod> pods) {
    return of(pods, List.of(), NONE);
  }

  /**
   * {@return those of some pods that have not ended}
   *
   * @param pods all pods of the cluster
   * @param claims all claims of the cluster
   * @param before what was known before: pods that are away now have ended
   */
  static KnownPods of(Collection<Pod> pods, Collection<ResourceClaim> claims, KnownPods before) {
    KnownPods known =
        new KnownPods(new LinkedHashMap<>(), new HashMap<>(), new HashMap<>(), new HashSet<>());
    Set<String> over = new HashSet<>(before.ended);
    over.addAll(before.byUid.keySet());
    for (Pod pod : pods) {
      if (isAlive(pod)) {
        String name = gangOf(pod);
        known.byUid.put(uid(pod), pod);
        known.names.put(uid(pod), name);
        ClaimConditions.instant(pod.getMetadata().getCreationTimestamp())
            .filter(at -> !isEnding(pod))
            .ifPresent(at -> known.born.merge(name, at, (a, b) -> a.isBefore(b) ? a : b));
      } else {
        over.add(uid(pod));
      }
    }
    over.removeAll(known.byUid.keySet());
    claims.stream()
        .flatMap(KnownPods::reservedFor)
        .filter(over::contains)
        .forEach(known.ended::add);
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
      for (Pod pod : consumers(claim)) {
        Instant last = end(pod, now);
        end = last.isAfter(end) ? last : end;
      }
      boolean isKnown =
          reservedFor(claim).findAny().isPresent()
              && reservedFor(claim).allMatch(uid -> byUid.containsKey(uid) || ended.contains(uid));
      end = isKnown ? end : ClaimReservation.NEVER;
    }
    return end;
  }

  /**
   * {@return whether all pods for which a claim is reserved have ended} Kubernetes gives its
   * devices back at any moment.
   */
  boolean isOver(ResourceClaim claim) {
    return reservedFor(claim).findAny().isPresent() && reservedFor(claim).allMatch(ended::contains);
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
    return reservedFor(claim).map(byUid::get).filter(Objects::nonNull).toList();
  }

  private static Stream<String> reservedFor(ResourceClaim claim) {
    List<ResourceClaimConsumerReference> all =
        claim.getStatus() == null ? null : claim.getStatus().getReservedFor();
    return all == null ? Stream.of() : all.stream().map(ResourceClaimConsumerReference::getUid);
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
