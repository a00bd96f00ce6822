package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.Driver;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.CapacityRequirements;
import io.fabric8.kubernetes.api.model.resource.v1.Device;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceCapacity;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceConstraint;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequest;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResult;
import io.fabric8.kubernetes.api.model.resource.v1.ExactDeviceRequest;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * What is free on the GPUs of the cluster's slices, and whether claims that have no device yet
 * could get one. Only shares and memory are looked at: kube-scheduler may still find that a claim
 * fits nowhere, because of selectors, or of the node. What does not fit here fits nowhere.
 *
 * <p>Claims of gangs that may have to give their devices back count as <i>held</i>: others may plan
 * with these devices, and prefer those that nobody holds. Confined to one thread.
 */
final class ClaimTrial {
  private static final long WHOLE = 100;
  private static final String UUID_ATTRIBUTE = Driver.NAME + "/uuid";

  /** By pool and name. */
  private final Map<List<String>, Gpu> gpus = new LinkedHashMap<>();

  private boolean isComplete = true;

  /** A GPU; amounts may become negative, if more is planned than there is. */
  private static final class Gpu {
    final boolean isTainted;
    final long memoryBytes;
    long share;
    long memory;
    long heldShare;
    long heldMemory;

    Gpu(long share, long memory, boolean isTainted) {
      this.share = share;
      this.memory = memory;
      this.memoryBytes = memory;
      this.isTainted = isTainted;
    }

    long of(OptionalLong memory) {
      return memory.orElse(memoryBytes);
    }

    /** {@return how many claims that ask this fit} */
    long room(Ask ask) {
      if (isTainted && !ask.isTolerant) {
        return 0;
      }
      return Math.max(0, Math.min(share / ask.share, memory / Math.max(1, of(ask.memory))));
    }

    boolean isUnheldRoom(Ask ask) {
      return room(ask) > 0
          && share - heldShare >= ask.share
          && memory - heldMemory >= of(ask.memory);
    }
  }

  /**
   * What a request of a claim asks of one GPU.
   *
   * @param share percent
   * @param memory bytes; empty for all of the GPU
   * @param isTolerant whether it may get GPUs with a taint
   */
  private record Ask(long share, OptionalLong memory, boolean isTolerant) {}

  /**
   * A request of a claim.
   *
   * @param ask what it asks of each GPU
   * @param count how many GPUs, or parts of them
   * @param isApart whether they must be different GPUs
   */
  private record Need(Ask ask, long count, boolean isApart) {}

  /**
   * Creates it with nothing taken.
   *
   * @param slices all slices of the cluster
   */
  ClaimTrial(Collection<ResourceSlice> slices) {
    for (ResourceSlice slice : slices) {
      if (Driver.NAME.equals(slice.getSpec().getDriver()) && slice.getSpec().getDevices() != null) {
        for (Device device : slice.getSpec().getDevices()) {
          gpus.put(
              List.of(slice.getSpec().getPool().getName(), device.getName()),
              new Gpu(
                  capacity(device, Driver.SHARE),
                  capacity(device, Driver.MEMORY),
                  device.getTaints() != null && !device.getTaints().isEmpty()));
        }
      }
    }
  }

  private static long capacity(Device device, String name) {
    DeviceCapacity capacity = device.getCapacity() == null ? null : device.getCapacity().get(name);
    return capacity == null ? 0 : amount(capacity.getValue());
  }

  private static long amount(Quantity quantity) {
    return quantity.getNumericalAmount().max(BigDecimal.ZERO).longValue();
  }

  /** {@return whether all devices that claims have are known; otherwise nothing can be told} */
  boolean isComplete() {
    return isComplete && !gpus.isEmpty();
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
        .flatMap(claim -> ClaimConditions.devices(claim).stream())
        .map(this::gpu)
        .allMatch(gpu -> gpu == null || (gpu.share >= 0 && gpu.memory >= 0));
  }

  /** A claim does not keep its devices after all. */
  void drop(ResourceClaim claim) {
    change(claim, -1, 0);
  }

  private @Nullable Gpu gpu(DeviceRequestAllocationResult result) {
    return gpus.get(List.of(result.getPool(), result.getDevice()));
  }

  private void change(ResourceClaim claim, int taken, int held) {
    for (DeviceRequestAllocationResult result : ClaimConditions.devices(claim)) {
      Gpu gpu = gpu(result);
      if (gpu == null) {
        isComplete = false;
        continue;
      }
      Map<String, Quantity> amounts = result.getConsumedCapacity();
      long share = asked(amounts, Driver.SHARE).orElse(WHOLE);
      long memory = gpu.of(asked(amounts, Driver.MEMORY));
      gpu.share -= taken * share;
      gpu.memory -= taken * memory;
      gpu.heldShare += held * share;
      gpu.heldMemory += held * memory;
    }
  }

  /**
   * {@return whether all these claims may get devices} False only if it is sure: for one request
   * there is too little room on any node, for each kind of request in the cluster, or all together
   * ask more than is free.
   */
  boolean mayFit(Collection<ResourceClaim> claims) {
    List<Need> needs = claims.stream().flatMap(claim -> needs(claim).stream()).toList();
    Map<Ask, Long> wanted = new LinkedHashMap<>();
    for (Need need : needs) {
      wanted.merge(need.ask, need.count, Long::sum);
      if (mostOnANode(need) < need.count) {
        return false;
      }
    }
    for (Map.Entry<Ask, Long> each : wanted.entrySet()) {
      long room = gpus.values().stream().mapToLong(gpu -> gpu.room(each.getKey())).sum();
      if (room < each.getValue()) {
        return false;
      }
    }
    long share = needs.stream().mapToLong(need -> need.count * need.ask.share).sum();
    long memory = needs.stream().mapToLong(need -> need.count * need.ask.memory.orElse(0)).sum();
    return gpus.values().stream().mapToLong(gpu -> Math.max(0, gpu.share)).sum() >= share
        && gpus.values().stream().mapToLong(gpu -> Math.max(0, gpu.memory)).sum() >= memory;
  }

  /**
   * {@return whether claims may fit after others have got devices of a pool, whichever these are}
   */
  boolean mayFitBeside(
      Collection<ResourceClaim> claims, Collection<ResourceClaim> others, String pool) {
    List<Need> needs = others.stream().flatMap(claim -> needs(claim).stream()).toList();
    needs.forEach(need -> everywhere(need, pool, 1));
    boolean fits = mayFit(claims);
    needs.forEach(need -> everywhere(need, pool, -1));
    return fits;
  }

  private void everywhere(Need need, String pool, int times) {
    long parts = times * (need.isApart ? 1 : need.count);
    gpus.forEach(
        (key, gpu) -> {
          if (key.get(0).equals(pool)) {
            gpu.share -= parts * need.ask.share;
            gpu.memory -= parts * gpu.of(need.ask.memory);
          }
        });
  }

  /** {@return how many of a request's parts fit on one node: a claim is for one} */
  private long mostOnANode(Need need) {
    Map<String, Long> room = new HashMap<>();
    gpus.forEach(
        (key, gpu) -> {
          long parts = gpu.room(need.ask);
          room.merge(key.get(0), need.isApart ? Math.min(1, parts) : parts, Long::sum);
        });
    return room.values().stream().mapToLong(Long::longValue).max().orElse(0);
  }

  /** Plans devices for claims, the largest first, if possible those that no other gang holds. */
  void plan(Collection<ResourceClaim> claims) {
    List<Need> needs = new ArrayList<>();
    claims.forEach(claim -> needs.addAll(needs(claim)));
    needs.sort(Comparator.comparingLong((Need need) -> need.ask.share).reversed());
    needs.forEach(this::plan);
  }

  private void plan(Need need) {
    Ask ask = need.ask;
    List<Gpu> left = new ArrayList<>(gpus.values());
    for (long i = 0; i < need.count; i++) {
      Optional<Gpu> unheld = left.stream().filter(gpu -> gpu.isUnheldRoom(ask)).findFirst();
      Optional<Gpu> found =
          unheld.or(() -> left.stream().filter(gpu -> gpu.room(ask) > 0).findFirst());
      if (found.isEmpty()) {
        return;
      }
      found.get().share -= ask.share;
      found.get().memory -= found.get().of(ask.memory);
      if (need.isApart) {
        left.remove(found.get());
      }
    }
  }

  /**
   * {@return what a claim's requests of vgpu's classes ask; without those that have alternatives} A
   * request of all GPUs of a node counts as one.
   */
  private static List<Need> needs(ResourceClaim claim) {
    List<Need> needs = new ArrayList<>();
    List<DeviceRequest> requests =
        claim.getSpec() == null || claim.getSpec().getDevices() == null
            ? List.of()
            : claim.getSpec().getDevices().getRequests();
    for (DeviceRequest request : requests) {
      ExactDeviceRequest exactly = request.getExactly();
      if (exactly == null
          || !isOurs(exactly.getDeviceClassName())
          || Boolean.TRUE.equals(exactly.getAdminAccess())) {
        continue;
      }
      CapacityRequirements capacity = exactly.getCapacity();
      Map<String, Quantity> amounts = capacity == null ? Map.of() : capacity.getRequests();
      Ask ask =
          new Ask(
              Math.max(1, asked(amounts, Driver.SHARE).orElse(WHOLE)),
              asked(amounts, Driver.MEMORY),
              exactly.getTolerations() != null && !exactly.getTolerations().isEmpty());
      long count = exactly.getCount() == null ? 1 : Math.max(1, exactly.getCount());
      needs.add(new Need(ask, count, isApart(claim, request.getName())));
    }
    return needs;
  }

  /** {@return whether the GPUs of a request must be different ones} */
  private static boolean isApart(ResourceClaim claim, String request) {
    List<DeviceConstraint> all = claim.getSpec().getDevices().getConstraints();
    return all != null
        && all.stream()
            .filter(one -> UUID_ATTRIBUTE.equals(one.getDistinctAttribute()))
            .map(DeviceConstraint::getRequests)
            .anyMatch(names -> names == null || names.isEmpty() || names.contains(request));
  }

  /** {@return whether a claim asks for vgpu's devices} */
  static boolean wants(ResourceClaim claim) {
    return !needs(claim).isEmpty();
  }

  private static boolean isOurs(String deviceClass) {
    return deviceClass.equals(Driver.NAME) || deviceClass.endsWith("." + Driver.NAME);
  }

  private static OptionalLong asked(Map<String, Quantity> amounts, String name) {
    Quantity found =
        amounts == null ? null : amounts.getOrDefault(name, amounts.get(Driver.NAME + "/" + name));
    return found == null ? OptionalLong.empty() : OptionalLong.of(amount(found));
  }
}
