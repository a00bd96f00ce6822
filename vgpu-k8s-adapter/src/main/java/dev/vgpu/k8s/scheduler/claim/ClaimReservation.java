package dev.vgpu.k8s.scheduler.claim;

import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The place of the oldest pods that wait for devices. It begins when enough running pods have
 * ended, as expected, that the waiting ones fit. Younger pods get no devices with which that would
 * be later.
 *
 * <p>The trial takes selectors for satisfied. So pods that seem to fit now, and get no device, hold
 * others up in a bounded number of decisions. Confined to the thread that decides.
 */
final class ClaimReservation {
  /** When pods end that may run forever. */
  static final Instant NEVER = Instant.MAX;

  private final long mostDelays;

  /** By name: in how many decisions pods that seemed to fit have held others up. */
  private final Map<String, Integer> delays = new HashMap<>();

  /** The place at the last decision. */
  private @Nullable HeldPlace last;

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
   */
  record Waiting(Age age, String label, Collection<ResourceClaim> missing) {}

  /**
   * A claim with devices.
   *
   * @param claim the claim
   * @param end when its pods end, or {@link #NEVER}
   * @param age the age of its oldest gang or pod; {@link Age#FIRST} if its pods may be bound
   */
  record Held(ResourceClaim claim, Instant end, Age age) {}

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
   * {@return the place of the oldest pods that have one} Pods that do not fit even if all others
   * have ended have none.
   *
   * @param waiting all pods that wait for devices
   * @param held all claims with devices that they keep
   * @param gpus all GPUs of the cluster
   * @param now the time of day
   */
  Optional<HeldPlace> of(
      Collection<Waiting> waiting, Collection<Held> held, Collection<SliceGpu> gpus, Instant now) {
    if (last != null && last.isNow && last.hasDelayed) {
      delays.merge(last.owner.age.name, 1, Integer::sum);
    }
    last = null;
    delays.keySet().retainAll(waiting.stream().map(one -> one.age.name).toList());
    List<Waiting> order = waiting.stream().sorted(Comparator.comparing(Waiting::age)).toList();
    for (Waiting one : order) {
      Optional<HeldPlace> place = place(one, held, gpus, now);
      if (place.isPresent()) {
        last = place.get();
        return place;
      }
    }
    return Optional.empty();
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
    if (!without(order, high, own, gpus).mayFit(one.missing)) {
      return Optional.empty();
    }
    // Find the smallest number of claims that must end: it gives the earliest time.
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (without(order, middle, own, gpus).mayFit(one.missing)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    ClaimTrial then = without(order, high, own, gpus);
    if (!then.isComplete()) {
      return Optional.empty();
    }
    if (high > 0) {
      return Optional.of(new HeldPlace(one, order.get(high - 1).end, false, then));
    }
    return delays.getOrDefault(one.age.name, 0) < mostDelays
        ? Optional.of(new HeldPlace(one, now, true, then))
        : Optional.empty();
  }

  private static ClaimTrial without(
      List<Held> order, int ended, List<Held> own, Collection<SliceGpu> gpus) {
    ClaimTrial trial = new ClaimTrial(gpus);
    own.forEach(one -> trial.take(one.claim));
    order.subList(ended, order.size()).forEach(one -> trial.take(one.claim));
    return trial;
  }
}
