package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequests;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaimConsumerReference;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.IdentityHashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;

/**
 * Decides when pods whose GPUs are claims may be bound: a gang's pods together.
 *
 * <p>kube-scheduler allocates a pod's claims, and then waits for conditions of the devices, as
 * https://kep.k8s.io/5007 describes. When all pods of a gang have their claims, all claims get the
 * condition for which it waits. If that takes too long, they get the one by which it gives the
 * devices back and starts over.
 *
 * <p>Two gangs that each hold a part of what they need would both fail, and might do so again and
 * again. Therefore the one that exists longest gets twice the time, if another one's time is over.
 *
 * <p>The state is that of the API; only which gang gets twice the time is kept here. Confined to
 * one thread.
 */
final class GangClaims {
  private static final Comparator<Group> BY_AGE =
      Comparator.comparing((Group one) -> one.born).thenComparing(one -> one.name);

  private final Duration hold;
  private final Sizes sizes;

  /** By gang: the beginning of the attempt that gets twice the time. */
  private final Map<String, Instant> spared = new HashMap<>();

  /** How many pods a gang needs. */
  interface Sizes {
    /** {@return the size; 0 if it is not known} */
    int of(Pod member, GangName gang);
  }

  /**
   * Creates it.
   *
   * @param hold how long the claims of an incomplete gang are held
   * @param sizes how many pods gangs need
   */
  GangClaims(Duration hold, Sizes sizes) {
    this.hold = hold;
    this.sizes = sizes;
  }

  /**
   * The condition that a claim's devices are to get.
   *
   * @param claim the claim
   * @param isComplete whether its pods may be bound; otherwise its devices are to be given back
   * @param message the reason
   */
  record Verdict(ResourceClaim claim, boolean isComplete, String message) {}

  /**
   * The pods that have not ended.
   *
   * @param byUid by UID
   * @param names the names of their gangs, by UID; the UID of a pod without one
   * @param born when the first pod of each gang was created
   */
  private record Known(
      Map<String, Pod> byUid, Map<String, String> names, Map<String, Instant> born) {
    static Known of(Collection<Pod> pods) {
      Known known = new Known(new LinkedHashMap<>(), new HashMap<>(), new HashMap<>());
      for (Pod pod : pods) {
        if (isAlive(pod)) {
          String name = gangOf(pod);
          known.byUid.put(uid(pod), pod);
          known.names.put(uid(pod), name);
          ClaimConditions.instant(pod.getMetadata().getCreationTimestamp())
              .ifPresent(at -> known.born.merge(name, at, (a, b) -> a.isBefore(b) ? a : b));
        }
      }
      return known;
    }

    String name(Pod pod) {
      return names.getOrDefault(uid(pod), uid(pod));
    }

    /** {@return the pods for which a claim is reserved, as far as they are known} */
    List<Pod> consumers(ResourceClaim claim) {
      List<ResourceClaimConsumerReference> all = claim.getStatus().getReservedFor();
      return all == null
          ? List.of()
          : all.stream().map(one -> byUid.get(one.getUid())).filter(Objects::nonNull).toList();
    }
  }

  /** A gang, or a single pod, with claims that wait. */
  private static final class Group {
    final String name;
    final int size;
    final String lack;
    final Instant born;

    /** The UIDs of its pods that are bound, or have their claims. */
    final Set<String> holding = new HashSet<>();

    /** When its first waiting claim was allocated. */
    Instant since = Instant.MAX;

    /** Its claims that wait. */
    final List<ResourceClaim> waiting = new ArrayList<>();

    /** The pods that have claims without devices. */
    final Set<String> lacking = new HashSet<>();

    /** Those claims, by name. */
    final Map<String, ResourceClaim> missing = new LinkedHashMap<>();

    /** Why it gives its devices back; empty if it does not. */
    String failure = "";

    Group(String name, int size, String lack, Instant born) {
      this.name = name;
      this.size = size;
      this.lack = lack;
      this.born = born;
    }

    boolean isComplete() {
      return size > 0 && holding.size() >= size;
    }

    /** {@return the claims that it needs; none if it has more pods than it needs} */
    Collection<ResourceClaim> needed() {
      return holding.size() + lacking.size() > size ? List.of() : missing.values();
    }

    void fail(String why) {
      failure =
          size == 0
              ? name + ": " + lack
              : String.format(
                  Locale.ROOT,
                  "gang %s: %d of %d pods have their claims, and %s",
                  name,
                  holding.size(),
                  size,
                  why);
    }
  }

  /**
   * {@return the claims whose devices are to get a condition now}
   *
   * @param claims all claims of the cluster
   * @param pods all pods of the cluster
   * @param slices all slices of the cluster
   * @param now the time of day, by which the API's times are measured
   */
  List<Verdict> decide(
      Collection<ResourceClaim> claims,
      Collection<Pod> pods,
      Collection<ResourceSlice> slices,
      Instant now) {
    List<ResourceClaim> waiting =
        claims.stream().filter(one -> ClaimConditions.of(one) == ClaimConditions.WAITING).toList();
    if (waiting.isEmpty()) {
      spared.clear();
      return List.of();
    }
    Known known = Known.of(pods);
    Map<String, Group> groups = groups(waiting, known, now);
    count(claims, known, groups);
    endLate(groups.values(), now);
    endHopeless(claims, known, groups, new ClaimTrial(slices));
    List<Verdict> verdicts = new ArrayList<>();
    for (ResourceClaim claim : waiting) {
      verdict(claim, known, groups).ifPresent(verdicts::add);
    }
    return verdicts;
  }

  private Map<String, Group> groups(List<ResourceClaim> waiting, Known known, Instant now) {
    Map<String, Group> groups = new LinkedHashMap<>();
    for (ResourceClaim claim : waiting) {
      for (Pod pod : known.consumers(claim)) {
        Group group = groups.computeIfAbsent(known.name(pod), key -> group(key, pod, known));
        group.waiting.add(claim);
        Instant since = ClaimConditions.allocated(claim).orElse(now);
        group.since = since.isBefore(group.since) ? since : group.since;
      }
    }
    return groups;
  }

  private Group group(String name, Pod pod, Known known) {
    Instant born = known.born().getOrDefault(name, Instant.MAX);
    try {
      Optional<GangName> gang = PodRequests.gang(pod);
      int size = gang.isEmpty() ? 1 : sizes.of(pod, gang.get());
      return new Group(name, size, "its size is not known: its group object is not there", born);
    } catch (PodRefusedException e) {
      return new Group(name, 0, "refused: " + e.getMessage(), born);
    }
  }

  /** Counts the pods of the groups that are bound, or have claims that have not failed. */
  private static void count(
      Collection<ResourceClaim> claims, Known known, Map<String, Group> groups) {
    Set<String> holding = new HashSet<>();
    Set<String> failed = new HashSet<>();
    for (ResourceClaim claim : claims) {
      ClaimConditions state = ClaimConditions.of(claim);
      Set<String> into = state == ClaimConditions.FAILED ? failed : holding;
      if (state != ClaimConditions.NONE) {
        known.consumers(claim).forEach(pod -> into.add(uid(pod)));
      }
    }
    for (Pod pod : known.byUid().values()) {
      Group group = groups.get(known.name(pod));
      boolean isHeld = holding.contains(uid(pod)) && !failed.contains(uid(pod));
      if (group != null && (isHeld || isBound(pod))) {
        group.holding.add(uid(pod));
      }
    }
  }

  /** Ends gangs whose time is over. */
  private void endLate(Collection<Group> all, Instant now) {
    List<Group> partial = all.stream().filter(one -> !one.isComplete()).toList();
    List<Group> late = partial.stream().filter(one -> !now.isBefore(one.since.plus(hold))).toList();
    Optional<Group> oldest = partial.stream().min(BY_AGE);
    spared.keySet().retainAll(partial.stream().map(one -> one.name).toList());
    for (Group one : late) {
      if (late.size() > 1 && one == oldest.orElse(null)) {
        spared.putIfAbsent(one.name, one.since);
      }
      boolean isSpared =
          one.since.equals(spared.get(one.name)) && now.isBefore(one.since.plus(hold).plus(hold));
      if (!isSpared) {
        one.fail("its time is over");
      }
    }
  }

  /**
   * Ends gangs whose other pods find no devices now, even if all younger gangs gave theirs back:
   * others may take what such a gang holds. If nobody else waits, it keeps that.
   */
  private static void endHopeless(
      Collection<ResourceClaim> claims, Known known, Map<String, Group> groups, ClaimTrial trial) {
    List<Group> partial =
        groups.values().stream().filter(one -> !one.isComplete() && one.size > 0).toList();
    List<Group> trying =
        partial.stream().filter(one -> one.failure.isEmpty()).sorted(BY_AGE).toList();
    if (trying.isEmpty()) {
      return;
    }
    Set<String> lacking = lacking(claims, known, groups);
    Set<ResourceClaim> held = Collections.newSetFromMap(new IdentityHashMap<>());
    partial.forEach(one -> held.addAll(one.waiting));
    for (ResourceClaim claim : claims) {
      if (held.contains(claim)) {
        trial.hold(claim);
      } else if (ClaimConditions.of(claim) != ClaimConditions.FAILED) {
        trial.take(claim);
      }
    }
    for (Group one : trying) {
      boolean isHopeful = trial.keep(one.waiting) && trial.mayFit(one.needed());
      boolean isAlone = lacking.stream().allMatch(one.name::equals);
      if (isHopeful) {
        trial.plan(one.needed());
      } else if (!isAlone && trial.isComplete()) {
        one.waiting.forEach(trial::drop);
        one.fail("no GPUs have room for the others now");
      }
    }
  }

  /**
   * {@return the names of gangs with pods whose claims have no devices} Those of the groups get
   * these claims.
   */
  private static Set<String> lacking(
      Collection<ResourceClaim> claims, Known known, Map<String, Group> groups) {
    Map<String, ResourceClaim> byName = new HashMap<>();
    for (ResourceClaim claim : claims) {
      boolean isLacking =
          ClaimConditions.devices(claim).isEmpty()
              || ClaimConditions.of(claim) == ClaimConditions.FAILED;
      if (isLacking && ClaimTrial.wants(claim)) {
        byName.put(claim.getMetadata().getNamespace() + "/" + claim.getMetadata().getName(), claim);
      }
    }
    Set<String> lacking = new HashSet<>();
    for (Pod pod : byName.isEmpty() ? List.<Pod>of() : known.byUid().values()) {
      Group group = groups.get(known.name(pod));
      for (String name : isBound(pod) ? List.<String>of() : claimNames(pod)) {
        ResourceClaim claim = byName.get(name);
        if (claim != null) {
          lacking.add(known.name(pod));
          if (group != null) {
            group.lacking.add(uid(pod));
            group.missing.put(name, claim);
          }
        }
      }
    }
    return lacking;
  }

  /** {@return the names of a pod's claims, with their namespace; without those not made yet} */
  private static List<String> claimNames(Pod pod) {
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

  private static Optional<Verdict> verdict(
      ResourceClaim claim, Known known, Map<String, Group> groups) {
    List<Pod> pods = known.consumers(claim);
    if (pods.isEmpty() || pods.size() < claim.getStatus().getReservedFor().size()) {
      return Optional.empty(); // it is not in use, or not all its pods are known yet
    }
    List<Group> of = pods.stream().map(pod -> groups.get(known.name(pod))).distinct().toList();
    for (Group group : of) {
      if (!group.failure.isEmpty()) {
        return Optional.of(new Verdict(claim, false, group.failure));
      }
    }
    if (!of.stream().allMatch(Group::isComplete)) {
      return Optional.empty();
    }
    String message =
        of.get(0).size == 1
            ? "the pod waits for no other"
            : "gang " + of.get(0).name + ": its pods have their claims";
    return Optional.of(new Verdict(claim, true, message));
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

  private static boolean isBound(Pod pod) {
    String node = pod.getSpec().getNodeName();
    return node != null && !node.isEmpty();
  }

  private static boolean isAlive(Pod pod) {
    String phase = pod.getStatus() == null ? "" : pod.getStatus().getPhase();
    return !"Succeeded".equals(phase) && !"Failed".equals(phase);
  }

  private static String uid(Pod pod) {
    return pod.getMetadata().getUid();
  }
}
