package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.names.Driver;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.resource.v1.CapacityRequirements;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceConstraint;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequest;
import io.fabric8.kubernetes.api.model.resource.v1.ExactDeviceRequest;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * A request of a claim for shared GPUs of vgpu. Requests for parts of GPUs in MIG mode are none:
 * kube-scheduler alone decides them.
 *
 * @param ask what it asks of each GPU
 * @param count how many GPUs, or parts of them
 * @param isApart whether they must be different GPUs
 */
public record ClaimNeed(Ask ask, long count, boolean isApart) {
  /** The share of a claim that names none, in percent. */
  static final long WHOLE = 100;

  private static final String UUID_ATTRIBUTE = Driver.NAME + "/uuid";

  /**
   * What a request asks of one GPU.
   *
   * @param share percent
   * @param memory bytes; empty for all of the GPU
   * @param isTolerant whether it may get GPUs with a taint
   */
  public record Ask(long share, OptionalLong memory, boolean isTolerant) {}

  /** {@return how many of its parts one GPU may have to give} */
  long partsOfOne() {
    return isApart ? 1 : count;
  }

  /**
   * {@return what claims' requests of vgpu's classes ask; without those that have alternatives} A
   * request of all GPUs of a node counts as one.
   */
  public static List<ClaimNeed> of(Collection<ResourceClaim> claims) {
    List<ClaimNeed> needs = new ArrayList<>();
    claims.forEach(claim -> add(claim, needs));
    return needs;
  }

  /** {@return whether a claim asks for shared GPUs of vgpu} */
  public static boolean isIn(ResourceClaim claim) {
    return !of(List.of(claim)).isEmpty();
  }

  private static List<DeviceRequest> requests(ResourceClaim claim) {
    return claim.getSpec() == null || claim.getSpec().getDevices() == null
        ? List.of()
        : claim.getSpec().getDevices().getRequests();
  }

  private static void add(ResourceClaim claim, List<ClaimNeed> needs) {
    for (DeviceRequest request : requests(claim)) {
      ExactDeviceRequest exactly = request.getExactly();
      if (exactly == null
          || !isOurs(exactly.getDeviceClassName())
          || !takes(exactly.getAdminAccess())) {
        continue;
      }
      CapacityRequirements capacity = exactly.getCapacity();
      Map<String, Quantity> amounts = capacity == null ? null : capacity.getRequests();
      Ask ask =
          new Ask(
              Math.max(1, amount(amounts, Driver.SHARE).orElse(WHOLE)),
              amount(amounts, Driver.MEMORY),
              exactly.getTolerations() != null && !exactly.getTolerations().isEmpty());
      long count = exactly.getCount() == null ? 1 : Math.max(1, exactly.getCount());
      needs.add(new ClaimNeed(ask, count, isApart(claim, request.getName())));
    }
  }

  /**
   * {@return whether a request or a device takes something} kube-scheduler counts access for
   * administration nowhere.
   */
  static boolean takes(@Nullable Boolean adminAccess) {
    return !Boolean.TRUE.equals(adminAccess);
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

  /** {@return whether a claim asks for parts of GPUs in MIG mode} */
  public static boolean isForParts(ResourceClaim claim) {
    return requests(claim).stream()
        .map(DeviceRequest::getExactly)
        .anyMatch(one -> one != null && isOf(one.getDeviceClassName(), Driver.MIG_CLASS));
  }

  private static boolean isOurs(@Nullable String deviceClass) {
    return isOf(deviceClass, Driver.NAME) && !isOf(deviceClass, Driver.MIG_CLASS);
  }

  private static boolean isOf(@Nullable String deviceClass, String name) {
    return deviceClass != null && (deviceClass.equals(name) || deviceClass.endsWith("." + name));
  }

  /** {@return an amount of capacity, by its name with or without vgpu's domain} */
  public static OptionalLong amount(@Nullable Map<String, Quantity> amounts, String name) {
    Quantity found =
        amounts == null ? null : amounts.getOrDefault(name, amounts.get(Driver.NAME + "/" + name));
    return found == null ? OptionalLong.empty() : OptionalLong.of(amount(found));
  }

  /** {@return a quantity; 0 if it is negative} */
  public static long amount(Quantity quantity) {
    return quantity.getNumericalAmount().max(BigDecimal.ZERO).longValue();
  }
}
