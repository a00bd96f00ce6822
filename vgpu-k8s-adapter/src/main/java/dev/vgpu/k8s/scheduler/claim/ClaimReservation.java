package dev.vgpu.k8s.scheduler.claim;

import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The place of the oldest pods that wait for devices. It begins when enough running pods have
 * ended, as expected, that the waiting ones fit. Younger pods get no devices with which that would
 * be later.
 *
 * <p>The trial takes selectors for satisfied. So pods that seem to fit now, and get no device, hold
 * others up in a bounded number of decisions. Those that are alike to kube-scheduler do so
 * together, until one of them gets a device after all.
 *
 * <p>Pods that ask something else have a place too, if those before them may never use theirs: it
 * begins now, or nobody knows when, or they have had it and got no device. Otherwise one pod that
 * kube-scheduler does not schedule would take the place of all that come after it. Confined to the
 * thread that decides.
 */
final class ClaimReservation {
  /** When pods end that may run forever. */
  static final Instant NEVER = Instant.MAX;

  /** Of how many kinds of pods the place is looked for, beside the first; it costs some time. */
  private static final int MOST_OTHERS = 4;

  private final long mostDelays;

  /** By name: in how many decisions pods that seemed to fit have held others up. */
  private final Map<String, Integer> delays = new HashMap<>();

  /** The same for all that are alike, since one of them got a device. */
  private final Map<Set<Likeness>, Integer> delaysOfAlike = new HashMap<>();

  /** The places at the last decision. */
  private HeldPlaces last = HeldPlaces.NONE;

  /**
   * Creates it.
   *
   * @param mostDelays in how many decisions pods that seem to fit may hold others up
   */
  ClaimReservation(long mostDelays) {
    this.mostDelays = mostDelays;
  }

  /**
   * The place in line of a gang, or of a single pod: the older one comes first.
   *
   * @param born when its first pod was created
   * @param name its unique name
   */
  record Age(Instant born, String name) implements Comparable<Age> {
    /** The age of pods that do not wait any more. */
    static final Age FIRST = new Age(Instant.MIN, "");

    @Override
    public int compareTo(Age other) {
      int byBirth = born.compareTo(other.born);
      return byBirth != 0 ? byBirth : name.compareTo(other.name);
    }
  }

  /**
   * A gang, or a single pod, that waits for devices.
   *
   * @param age its age
   * @param label its name for people
   * @param missing its claims without devices
   * @param likenesses what its pods are like
   */
  record Waiting(
      Age age, String label, Collection<ResourceClaim> missing, Set<Likeness> likenesses) {}

  /**
   * A claim with devices.
   *
   * @param claim the claim
   * @param end when its pods end, or {@link #NEVER}
   * @param age the age of its oldest gang or pod; {@link Age#FIRST} if its pods may be bound
   * @param likenesses what its pods are like, if they may not be bound yet
   */
  record Held(ResourceClaim claim, Instant end, Age age, Set<Likeness> likenesses) {}

  /**
   * A place that is held. After the last {@link #delayBy}, it is safe for use by several threads.
   */
  static final class HeldPlace {
    private final Waiting owner;
    private final Instant start;
    private final boolean isNow;
    private final ClaimTrial then;
    private volatile boolean hasDelayed;

    /** Whether the owner's claims fit, as long as {@link #then} is the same; null: not known. */
    private volatile @Nullable ClaimFit fit;

    private HeldPlace(Waiting owner, Instant start, boolean isNow, ClaimTrial then) {
      this.owner = owner;
      this.start = start;
      this.isNow = isNow;
      this.then = then;
    }

    /** {@return whether the place's owner is older} */
    boolean isBefore(Age age) {
      return owner.age.compareTo(age) < 0;
    }

    /** {@return why younger pods may not have these devices; empty if they may, and have them} */
    Optional<String> delayBy(Collection<ResourceClaim> claims, Instant end) {
      if (isInTime(end)) {
        return Optional.empty();
      }
      fit = null;
      claims.forEach(then::take);
      if (then.mayFit(owner.missing)) {
        return Optional.empty();
      }
      claims.forEach(then::drop);
      return Optional.of(delay());
    }

    /** Younger pods do not have these devices after all. */
    void drop(Collection<ResourceClaim> claims, Instant end) {
      if (!isInTime(end)) {
        fit = null;
        claims.forEach(then::drop);
      }
    }

    /**
     * {@return why younger pods may not get devices of pools yet, by pool; without those that they
     * may use} They get any of a pool's devices: which ones is not known yet.
     *
     * @param pools the pools' names
     * @param claims what the younger pods ask
     * @param end when the younger pods end
     */
    Map<String, String> delaysIn(
        Collection<String> pools, Collection<ResourceClaim> claims, Instant end) {
      if (isInTime(end)) {
        return Map.of();
      }
      List<String> refused = fit().impossibleBeside(ClaimNeed.of(claims), pools);
      if (refused.isEmpty()) {
        return Map.of();
      }
      String why = delay();
      Map<String, String> found = new LinkedHashMap<>();
      refused.forEach(pool -> found.put(pool, why));
      return found;
    }

    /** kube-scheduler asks about one young pod after the other. */
    private ClaimFit fit() {
      ClaimFit known = fit;
      if (known == null) {
        known = then.fit(owner.missing);
        fit = known;
      }
      return known;
    }

    /** {@return whether it begins at a known time that is still to come} */
    private boolean isToCome() {
      return !isNow && !start.equals(NEVER);
    }

    private boolean isInTime(Instant end) {
      return !end.equals(NEVER) && !end.isAfter(start);
    }

    private String delay() {
      hasDelayed = true;
      return "its GPUs are held for "
          + owner.label
          + (start.equals(NEVER) ? "" : isNow ? ", which fits now" : ", from " + start);
    }
  }

  /**
   * The places that are held, the oldest owner's first. After the last {@link #delayBy}, it is safe
   * for use by several threads.
   *
   * @param all the places
   */
  record HeldPlaces(List<HeldPlace> all) {
    static final HeldPlaces NONE = new HeldPlaces(List.of());

    private List<HeldPlace> before(Age age) {
      return all.stream().filter(place -> place.isBefore(age)).toList();
    }

    /** {@return why younger pods may not have these devices; empty if they may, and have them} */
    Optional<String> delayBy(Age age, Collection<ResourceClaim> claims, Instant end) {
      List<HeldPlace> taken = new ArrayList<>();
      for (HeldPlace place : before(age)) {
        Optional<String> why = place.delayBy(claims, end);
        if (why.isPresent()) {
          taken.forEach(one -> one.drop(claims, end));
          return why;
        }
        taken.add(place);
      }
      return Optional.empty();
    }

    /**
     * {@return why younger pods may not get devices of pools yet, by pool; without those that they
     * may use}
     *
     * @param age the younger pods' age
     * @param pools the pools' names
     * @param claims what the younger pods ask
     * @param end when the younger pods end
     */
    Map<String, String> delaysIn(
        Age age, Collection<String> pools, Collection<ResourceClaim> claims, Instant end) {
      Map<String, String> found = new LinkedHashMap<>();
      for (HeldPlace place : before(age)) {
        Collection<String> left =
            found.isEmpty()
                ? pools
                : pools.stream().filter(pool -> !found.containsKey(pool)).toList();
        found.putAll(place.delaysIn(left, claims, end));
      }
      return found;
    }
  }

  /**
   * {@return the places of the oldest pods} Pods that do not fit even if all others have ended have
   * none.
   *
   * @param waiting all pods that wait for devices
   * @param held all claims with devices that they keep
   * @param gpus all GPUs of the cluster
   * @param now the time of day
   */
  HeldPlaces of(
      Collection<Waiting> waiting, Collection<Held> held, Collection<SliceGpu> gpus, Instant now) {
    count(waiting, held);
    List<Waiting> order = waiting.stream().sorted(Comparator.comparing(Waiting::age)).toList();
    Set<Age> holding = held.stream().map(Held::age).collect(Collectors.toSet());
    List<HeldPlace> places = new ArrayList<>();
    Set<List<ClaimNeed>> kinds = new HashSet<>();
    Set<List<ClaimNeed>> tooLarge = new HashSet<>();
    Set<List<?>> givenUp = new HashSet<>();
    ClaimTrial idle = new ClaimTrial(gpus);
    int others = 0;
    for (Waiting one : order) {
      List<ClaimNeed> kind = ClaimNeed.of(one.missing);
      List<?> alike = List.of(kind, one.likenesses);
      boolean isAlike = kinds.contains(kind) || givenUp.contains(alike);
      if ((isAlike && !holding.contains(one.age)) || tooLarge.contains(kind)) {
        continue; // the older one's place is held for both, or neither has one
      }
      if (!idle.mayFit(one.missing)) {
        tooLarge.add(kind);
        continue;
      }
      if (!places.isEmpty() && others++ == MOST_OTHERS) {
        break;
      }
      Optional<HeldPlace> place = place(one, held, gpus, now);
      if (place.isPresent()) {
        places.add(place.get());
        if (place.get().isToCome() && !isGivenUp(one)) {
          break;
        }
        if (!holding.contains(one.age)) {
          kinds.add(kind);
        }
      } else if (areGivenUp(one.likenesses)) {
        givenUp.add(alike);
      }
    }
    last = new HeldPlaces(List.copyOf(places));
    return last;
  }

  /** Counts who has held others up, and forgets those that got devices or do not wait any more. */
  private void count(Collection<Waiting> waiting, Collection<Held> held) {
    for (HeldPlace place : last.all()) {
      if (place.isNow && place.hasDelayed) {
        delays.merge(place.owner.age.name, 1, Integer::sum);
        delaysOfAlike.merge(place.owner.likenesses, 1, Integer::sum);
      }
    }
    for (Held one : held) {
      delaysOfAlike.keySet().removeIf(alike -> !Collections.disjoint(alike, one.likenesses));
    }
    delays.keySet().retainAll(waiting.stream().map(one -> one.age.name).toList());
    delaysOfAlike.keySet().retainAll(waiting.stream().map(Waiting::likenesses).toList());
  }

  /** {@return whether pods, or others like them, seemed to fit for long and got no device} */
  private boolean isGivenUp(Waiting one) {
    return delays.getOrDefault(one.age.name, 0) >= mostDelays || areGivenUp(one.likenesses);
  }

  private boolean areGivenUp(Set<Likeness> likenesses) {
    return delaysOfAlike.getOrDefault(likenesses, 0) >= mostDelays;
  }

  private Optional<HeldPlace> place(
      Waiting one, Collection<Held> all, Collection<SliceGpu> gpus, Instant now) {
    List<Held> own = all.stream().filter(each -> each.age.equals(one.age)).toList();
    if (!own.isEmpty()) {
      delays.remove(one.age.name); // kube-scheduler finds devices for it
    }
    List<Held> order =
        all.stream()
            .filter(each -> each.age.compareTo(one.age) < 0)
            .sorted(Comparator.comparing(Held::end))
            .toList();
    int low = 0;
    int high = order.size();
    ClaimTrial then = without(order, high, own, gpus);
    if (!then.mayFit(one.missing)) {
      return Optional.empty();
    }
    // Find the smallest number of claims that must end: it gives the earliest time.
    while (low < high) {
      int middle = (low + high) >>> 1;
      ClaimTrial trial = without(order, middle, own, gpus);
      if (trial.mayFit(one.missing)) {
        high = middle;
        then = trial;
      } else {
        low = middle + 1;
      }
    }
    if (high > 0) {
      return Optional.of(new HeldPlace(one, order.get(high - 1).end, false, then));
    }
    return isGivenUp(one) ? Optional.empty() : Optional.of(new HeldPlace(one, now, true, then));
  }

  private static ClaimTrial without(
      List<Held> order, int ended, List<Held> own, Collection<SliceGpu> gpus) {
    ClaimTrial trial = new ClaimTrial(gpus);
    own.forEach(one -> trial.take(one.claim));
    order.subList(ended, order.size()).forEach(one -> trial.take(one.claim));
    return trial;
  }
}
