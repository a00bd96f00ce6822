package dev.vgpu.k8s.scheduler.claim;

import static java.util.Objects.requireNonNull;

import dev.vgpu.k8s.names.GangName;
import dev.vgpu.k8s.names.PodRefusedException;
import dev.vgpu.k8s.names.PodRequests;
import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.client.KubernetesClientException;
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
 * <p>The oldest pods that wait for devices have a {@link ClaimReservation}: kube-scheduler is told
 * not to give younger ones devices that would delay them. Those that got such devices before give
 * them back.
 *
 * <p>How long claims are held is measured with this process's monotonic clock, from when their
 * allocation was first seen: the API's times are those of other machines' clocks, which may differ.
 *
 * <p>The state is that of the API. Kept here are only when allocations were first seen, which gang
 * gets twice the time, and how often pods that seem to fit have held others up. One thread at a
 * time decides.
 */
public final class GangClaims {
  private static final Comparator<Group> BY_AGE =
      Comparator.comparing((Group one) -> one.born).thenComparing(one -> one.name);

  private final double holdS;
  private final Sizes sizes;
  private final ClaimReservation reservation;
  private final SliceGpu.Reader reader = new SliceGpu.Reader();

  /** When the allocations that wait were first seen. */
  private Map<Allocation, Double> seen = Map.of();

  /** By gang: the beginning of the attempt that gets twice the time. */
  private final Map<String, Double> spared = new HashMap<>();

  private volatile Decided last = new Decided(KnownPods.NONE, ClaimReservation.HeldPlaces.NONE);

  /** How many pods a gang needs. */
  public interface Sizes {
    /** {@return the size; 0 if it is not known} */
    int of(Pod member, GangName gang);
  }

  /**
   * Creates it.
   *
   * @param hold how long the claims of an incomplete gang are held
   * @param sizes how many pods gangs need
   */
  public GangClaims(Duration hold, Sizes sizes) {
    holdS = hold.toMillis() / 1e3;
    this.sizes = sizes;
    reservation = new ClaimReservation(hold.toSeconds());
  }

  /** An allocation of a claim. A claim that is allocated anew has another time, of any clock. */
  private record Allocation(String claim, Optional<Instant> at) {
    static Allocation of(ResourceClaim claim) {
      return new Allocation(
          claim.getMetadata().getNamespace()
              + "/"
              + claim.getMetadata().getName()
              + "/"
              + claim.getMetadata().getUid(),
          ClaimConditions.allocated(claim));
    }
  }

  /**
   * What the last decision knew.
   *
   * @param known the pods
   * @param places the places of the oldest pods that waited for devices
   */
  private record Decided(KnownPods known, ClaimReservation.HeldPlaces places) {}

  /**
   * The condition that a claim's devices are to get.
   *
   * @param claim the claim
   * @param isComplete whether its pods may be bound; otherwise its devices are to be given back
   * @param message the reason
   */
  public record Verdict(ResourceClaim claim, boolean isComplete, String message) {}

  /** A gang, or a single pod, with claims that wait. */
  private static final class Group {
    final String name;
    final int size;
    final String lack;
    final Instant born;

    /** The UIDs of its pods that are bound, or have their claims, and are not ending. */
    final Set<String> holding = new HashSet<>();

    /** When the first of its waiting allocations was first seen. */
    double sinceS = Double.POSITIVE_INFINITY;

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
   * @param now the time of day, by which the ends of pods are estimated
   * @param nowS the time in seconds of a monotonic clock
   */
  public List<Verdict> decide(
      Collection<ResourceClaim> claims,
      Collection<Pod> pods,
      Collection<ResourceSlice> slices,
      Instant now,
      double nowS) {
    List<ResourceClaim> waiting =
        claims.stream().filter(one -> ClaimConditions.of(one) == ClaimConditions.WAITING).toList();
    see(waiting, nowS);
    KnownPods known = KnownPods.of(pods, claims, last.known);
    List<SliceGpu> gpus = reader.read(slices);
    ClaimReservation.HeldPlaces places = places(claims, known, gpus, now);
    List<Verdict> verdicts = new ArrayList<>();
    if (waiting.isEmpty()) {
      spared.clear();
    } else {
      Map<String, Group> groups = groups(waiting, known);
      count(claims, known, groups);
      endLate(groups.values(), nowS);
      endDelaying(places, known, groups, now);
      endHopeless(claims, known, groups, new ClaimTrial(gpus));
      waiting.forEach(claim -> verdict(claim, known, groups).ifPresent(verdicts::add));
    }
    last = new Decided(known, places);
    return verdicts;
  }

  private void see(List<ResourceClaim> waiting, double nowS) {
    Map<Allocation, Double> before = seen;
    seen = new HashMap<>();
    for (ResourceClaim claim : waiting) {
      Allocation allocation = Allocation.of(claim);
      seen.put(allocation, before.getOrDefault(allocation, nowS));
    }
  }

  private Map<String, Group> groups(List<ResourceClaim> waiting, KnownPods known) {
    Map<String, Group> groups = new LinkedHashMap<>();
    for (ResourceClaim claim : waiting) {
      for (Pod pod : known.consumers(claim)) {
        Group group = groups.computeIfAbsent(known.name(pod), key -> group(key, pod, known));
        group.waiting.add(claim);
        group.sinceS = Math.min(group.sinceS, requireNonNull(seen.get(Allocation.of(claim))));
      }
    }
    return groups;
  }

  private Group group(String name, Pod pod, KnownPods known) {
    Instant born = known.born().getOrDefault(name, Instant.MAX);
    try {
      Optional<GangName> gang = PodRequests.gang(pod);
      int size = gang.isEmpty() ? 1 : sizes.of(pod, gang.get());
      return new Group(name, size, "its size is not known: its group object is not there", born);
    } catch (PodRefusedException e) {
      return new Group(name, 0, "refused: " + e.getMessage(), born);
    } catch (KubernetesClientException | IllegalArgumentException e) {
      return new Group(name, 0, "its size cannot be looked up: " + e.getMessage(), born);
    }
  }

  /**
   * Counts the pods of the groups that are bound, or have claims that have not failed; not those
   * that are ending, as the gang may have been made anew.
   */
  private static void count(
      Collection<ResourceClaim> claims, KnownPods known, Map<String, Group> groups) {
    Set<String> holding = new HashSet<>();
    Set<String> failed = new HashSet<>();
    for (ResourceClaim claim : claims) {
      ClaimConditions state = ClaimConditions.of(claim);
      Set<String> into = state == ClaimConditions.FAILED ? failed : holding;
      if (state != ClaimConditions.NONE) {
        known.consumers(claim).forEach(pod -> into.add(KnownPods.uid(pod)));
      }
    }
    for (Pod pod : known.byUid().values()) {
      Group group = groups.get(known.name(pod));
      boolean isHeld = holding.contains(KnownPods.uid(pod)) && !failed.contains(KnownPods.uid(pod));
      if (group != null && (isHeld || KnownPods.isBound(pod)) && !KnownPods.isEnding(pod)) {
        group.holding.add(KnownPods.uid(pod));
      }
    }
  }

  /** Ends gangs whose time is over. */
  private void endLate(Collection<Group> all, double nowS) {
    List<Group> partial = all.stream().filter(one -> !one.isComplete()).toList();
    List<Group> late = partial.stream().filter(one -> nowS - one.sinceS >= holdS).toList();
    Optional<Group> oldest = partial.stream().min(BY_AGE);
    spared.keySet().retainAll(partial.stream().map(one -> one.name).toList());
    for (Group one : late) {
      if (late.size() > 1 && one == oldest.orElse(null)) {
        spared.putIfAbsent(one.name, one.sinceS);
      }
      Double sparedS = spared.get(one.name);
      boolean isSpared = sparedS != null && one.sinceS == sparedS && nowS - one.sinceS < 2 * holdS;
      if (!isSpared) {
        one.fail("its time is over");
      }
    }
  }

  /** {@return the places of the oldest pods that wait for devices} */
  private ClaimReservation.HeldPlaces places(
      Collection<ResourceClaim> claims, KnownPods known, List<SliceGpu> gpus, Instant now) {
    List<ClaimReservation.Waiting> waiting = waiting(claims, known);
    if (waiting.isEmpty()) {
      return ClaimReservation.HeldPlaces.NONE;
    }
    List<ClaimReservation.Held> held = new ArrayList<>();
    for (ResourceClaim claim : claims) {
      if (!ClaimConditions.devices(claim).isEmpty() && !known.isOver(claim)) {
        held(claim, known, now).ifPresent(held::add);
      }
    }
    return reservation.of(waiting, held, gpus, now);
  }

  /**
   * {@return why a pod that has no devices yet may not get those of nodes, by node; without those
   * that it may use} Safe for use by several threads beside {@link #decide}, for which it does not
   * wait.
   *
   * @param pod the pod
   * @param claims its claims that ask for vgpu's devices
   * @param nodes the nodes
   * @param now the time of day
   */
  public Map<String, String> refusals(
      Pod pod, Collection<ResourceClaim> claims, Collection<String> nodes, Instant now) {
    Decided decided = last;
    return decided.places.delaysIn(decided.known.age(pod), nodes, claims, KnownPods.end(pod, now));
  }

  /** Ends complete groups that would delay the oldest pods that wait for devices. */
  private static void endDelaying(
      ClaimReservation.HeldPlaces places, KnownPods known, Map<String, Group> groups, Instant now) {
    List<Group> complete =
        groups.values().stream().filter(Group::isComplete).sorted(BY_AGE).toList();
    for (Group one : complete) {
      places
          .delayBy(
              new ClaimReservation.Age(one.born, one.name),
              one.waiting,
              known.end(one.waiting, now))
          .ifPresent(why -> one.failure = why);
    }
  }

  /** {@return a claim with devices; empty if they are to be given back} */
  private static Optional<ClaimReservation.Held> held(
      ResourceClaim claim, KnownPods known, Instant now) {
    Optional<ClaimReservation.Age> age =
        switch (ClaimConditions.of(claim)) {
          case NONE, COMPLETE -> Optional.of(ClaimReservation.Age.FIRST);
          case FAILED -> Optional.empty();
          case WAITING ->
              known.consumers(claim).stream().map(known::age).min(Comparator.naturalOrder());
        };
    Set<Likeness> likenesses = new HashSet<>();
    if (ClaimConditions.of(claim) == ClaimConditions.WAITING) {
      known.consumers(claim).forEach(pod -> likenesses.add(Likeness.of(pod, claim)));
    }
    return age.map(
        since ->
            new ClaimReservation.Held(claim, known.end(List.of(claim), now), since, likenesses));
  }

  /** {@return the gangs and single pods that have all their pods, and claims without devices} */
  private List<ClaimReservation.Waiting> waiting(
      Collection<ResourceClaim> claims, KnownPods known) {
    Map<String, ResourceClaim> lacking = lackingByName(claims);
    Map<String, Map<String, ResourceClaim>> missing = new LinkedHashMap<>();
    Map<String, Set<Likeness>> likenesses = new HashMap<>();
    Map<String, List<Pod>> members = new HashMap<>();
    for (Pod pod : lacking.isEmpty() ? List.<Pod>of() : known.byUid().values()) {
      if (!KnownPods.isTried(pod) || KnownPods.isEnding(pod)) {
        continue;
      }
      String name = known.name(pod);
      members.computeIfAbsent(name, key -> new ArrayList<>()).add(pod);
      for (String claim : KnownPods.isBound(pod) ? List.<String>of() : KnownPods.claimNames(pod)) {
        ResourceClaim lack = lacking.get(claim);
        if (lack != null) {
          missing.computeIfAbsent(name, key -> new LinkedHashMap<>()).put(claim, lack);
          likenesses.computeIfAbsent(name, key -> new HashSet<>()).add(Likeness.of(pod, lack));
        }
      }
    }
    List<ClaimReservation.Waiting> all = new ArrayList<>();
    missing.forEach(
        (name, its) -> {
          List<Pod> pods = members.getOrDefault(name, List.of());
          Pod pod = pods.get(0);
          Group group = group(name, pod, known);
          if (group.size == pods.size()) {
            String label =
                name.equals(KnownPods.uid(pod))
                    ? pod.getMetadata().getNamespace() + "/" + pod.getMetadata().getName()
                    : "gang " + name;
            all.add(
                new ClaimReservation.Waiting(
                    known.age(pod), label, its.values(), likenesses.getOrDefault(name, Set.of())));
          }
        });
    return all;
  }

  /**
   * Ends gangs whose other pods find no devices now, even if all younger gangs gave theirs back:
   * others may take what such a gang holds. If nobody else waits, it keeps that.
   */
  private static void endHopeless(
      Collection<ResourceClaim> claims,
      KnownPods known,
      Map<String, Group> groups,
      ClaimTrial trial) {
    List<Group> partial =
        groups.values().stream().filter(one -> !one.isComplete() && one.size > 0).toList();
    List<Group> trying =
        partial.stream().filter(one -> one.failure.isEmpty()).sorted(BY_AGE).toList();
    if (trying.isEmpty()) {
      return;
    }
    Set<String> lacking = lacking(claims, known, groups);
    Set<ResourceClaim> held = Collections.newSetFromMap(new IdentityHashMap<>());
    groups.values().stream()
        .filter(one -> !one.isComplete() || !one.failure.isEmpty())
        .forEach(one -> held.addAll(one.waiting));
    for (ResourceClaim claim : claims) {
      if (held.contains(claim)) {
        trial.hold(claim);
      } else if (ClaimConditions.of(claim) != ClaimConditions.FAILED && !known.isOver(claim)) {
        trial.take(claim);
      }
    }
    for (Group one : trying) {
      boolean isHopeful = trial.keep(one.waiting) && trial.mayFit(one.needed());
      boolean isAlone = lacking.stream().allMatch(one.name::equals);
      if (isHopeful) {
        trial.plan(one.needed());
      } else if (!isAlone && trial.knows(one.waiting)) {
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
      Collection<ResourceClaim> claims, KnownPods known, Map<String, Group> groups) {
    Map<String, ResourceClaim> byName = lackingByName(claims);
    Set<String> lacking = new HashSet<>();
    for (Pod pod : byName.isEmpty() ? List.<Pod>of() : known.byUid().values()) {
      Group group = groups.get(known.name(pod));
      for (String name : KnownPods.isBound(pod) ? List.<String>of() : KnownPods.claimNames(pod)) {
        ResourceClaim claim = byName.get(name);
        if (claim != null) {
          lacking.add(known.name(pod));
          if (group != null) {
            group.lacking.add(KnownPods.uid(pod));
            group.missing.put(name, claim);
          }
        }
      }
    }
    return lacking;
  }

  /** {@return the claims that ask for vgpu's devices and have none, by namespace and name} */
  private static Map<String, ResourceClaim> lackingByName(Collection<ResourceClaim> claims) {
    Map<String, ResourceClaim> byName = new HashMap<>();
    for (ResourceClaim claim : claims) {
      boolean isLacking =
          ClaimConditions.devices(claim).isEmpty()
              || ClaimConditions.of(claim) == ClaimConditions.FAILED;
      if (isLacking && ClaimNeed.isIn(claim)) {
        byName.put(claim.getMetadata().getNamespace() + "/" + claim.getMetadata().getName(), claim);
      }
    }
    return byName;
  }

  private static Optional<Verdict> verdict(
      ResourceClaim claim, KnownPods known, Map<String, Group> groups) {
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
}
