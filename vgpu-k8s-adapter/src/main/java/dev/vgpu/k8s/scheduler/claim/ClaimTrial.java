package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.names.Driver;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResult;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * What is free on the GPUs of the cluster's slices, and whether claims that have no device yet
 * could get one. Only shares and memory are looked at: kube-scheduler may still find that a claim
 * fits nowhere, because of selectors, or of the node. What does not fit here fits nowhere. Parts of
 * GPUs in MIG mode are no such room, and claims that have them take none of it. The same holds for
 * devices that are in no slice: kube-scheduler gives them to nobody. A device that is there twice
 * counts once.
 *
 * <p>Claims of gangs that may have to give their devices back count as <i>held</i>: others may plan
 * with these devices, and prefer those that nobody holds. Confined to one thread while it changes.
 */
final class ClaimTrial {
  /** By pool and name. */
  private final Map<String, Map<String, ClaimGpu>> pools = new LinkedHashMap<>();

  /** The parts of GPUs in MIG mode, by pool and name. */
  private final Set<List<String>> parts = new HashSet<>();

  /**
   * Creates it with nothing taken.
   *
   * @param gpus all GPUs of the cluster
   */
  ClaimTrial(Collection<SliceGpu> gpus) {
    for (SliceGpu one : gpus) {
      if (one.isPart()) {
        parts.add(List.of(one.pool(), one.name()));
        continue;
      }
      pools
          .computeIfAbsent(one.pool(), key -> new LinkedHashMap<>())
          .merge(
              one.name(),
              new ClaimGpu(one.share(), one.memory(), one.isTainted()),
              ClaimGpu::orLarger);
    }
  }

  /**
   * {@return whether the slices tell where these claims have devices} A new node's slice may be
   * seen after the claims on it: other pods with such claims may still find room there.
   */
  boolean knows(Collection<ResourceClaim> claims) {
    return !pools.isEmpty()
        && claims.stream()
            .flatMap(claim -> ClaimConditions.taken(claim).stream())
            .allMatch(one -> gpu(one) != null || isPart(one));
  }

  private boolean isPart(DeviceRequestAllocationResult result) {
    return parts.contains(Arrays.asList(result.getPool(), result.getDevice()));
  }

  /** A claim has its devices, and keeps them. */
  void take(ResourceClaim claim) {
    change(claim, 1, 0);
  }

  /** A claim has devices with which others may plan. */
  void hold(ResourceClaim claim) {
    change(claim, 0, 1);
  }

  /** {@return whether nobody has planned with the devices of held claims; they are taken now} */
  boolean keep(Collection<ResourceClaim> held) {
    held.forEach(claim -> change(claim, 1, -1));
    return held.stream()
        .flatMap(claim -> ClaimConditions.taken(claim).stream())
        .map(this::gpu)
        .allMatch(gpu -> gpu == null || (gpu.share >= 0 && gpu.memory >= 0));
  }

  /** A claim does not keep its devices after all. */
  void drop(ResourceClaim claim) {
    change(claim, -1, 0);
  }

  private @Nullable ClaimGpu gpu(DeviceRequestAllocationResult result) {
    return pools.getOrDefault(result.getPool(), Map.of()).get(result.getDevice());
  }

  private void change(ResourceClaim claim, int taken, int held) {
    for (DeviceRequestAllocationResult result : ClaimConditions.taken(claim)) {
      ClaimGpu gpu = gpu(result);
      if (gpu == null) {
        continue;
      }
      Map<String, Quantity> amounts = result.getConsumedCapacity();
      long share = ClaimNeed.amount(amounts, Driver.SHARE).orElse(ClaimNeed.WHOLE);
      long memory = gpu.of(ClaimNeed.amount(amounts, Driver.MEMORY));
      gpu.share -= taken * share;
      gpu.memory -= taken * memory;
      gpu.heldShare += held * share;
      gpu.heldMemory += held * memory;
    }
  }

  /** {@return whether all these claims may get devices} */
  boolean mayFit(Collection<ResourceClaim> claims) {
    return fit(claims).isPossible();
  }

  /** {@return whether these claims may get devices, as long as this trial does not change} */
  ClaimFit fit(Collection<ResourceClaim> claims) {
    return new ClaimFit(pools, ClaimNeed.of(claims));
  }

  /** Plans devices for claims, the largest first, if possible those that no other gang holds. */
  void plan(Collection<ResourceClaim> claims) {
    ClaimNeed.of(claims).stream()
        .sorted(Comparator.comparingLong((ClaimNeed need) -> need.ask().share()).reversed())
        .forEach(this::plan);
  }

  private void plan(ClaimNeed need) {
    ClaimNeed.Ask ask = need.ask();
    List<ClaimGpu> left = new ArrayList<>();
    pools.values().forEach(pool -> left.addAll(pool.values()));
    for (long i = 0; i < need.count(); i++) {
      Optional<ClaimGpu> unheld = left.stream().filter(gpu -> gpu.isUnheldRoom(ask)).findFirst();
      Optional<ClaimGpu> found =
          unheld.or(() -> left.stream().filter(gpu -> gpu.room(ask) > 0).findFirst());
      if (found.isEmpty()) {
        return;
      }
      found.get().share -= ask.share();
      found.get().memory -= found.get().of(ask.memory());
      if (need.isApart()) {
        left.remove(found.get());
      }
    }
  }
}
