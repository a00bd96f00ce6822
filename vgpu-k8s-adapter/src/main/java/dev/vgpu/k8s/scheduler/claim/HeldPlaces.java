package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.scheduler.claim.ClaimReservation.Age;
import dev.vgpu.k8s.scheduler.claim.ClaimReservation.HeldPlace;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

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
