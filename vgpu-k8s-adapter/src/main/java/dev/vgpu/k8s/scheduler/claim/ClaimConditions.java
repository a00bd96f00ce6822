package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.names.Driver;
import io.fabric8.kubernetes.api.model.Condition;
import io.fabric8.kubernetes.api.model.ConditionBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.AllocatedDeviceStatus;
import io.fabric8.kubernetes.api.model.resource.v1.AllocatedDeviceStatusBuilder;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceRequestAllocationResult;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaim;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceClaimBuilder;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Whether a claim's pods may be bound, as the conditions of its devices say. */
public enum ClaimConditions {
  /** The claim has no device of vgpu that is bound on a condition. */
  NONE,
  /** The conditions are not set. */
  WAITING,
  /** The pods may be bound. */
  COMPLETE,
  /** The devices are to be given back. */
  FAILED;

  /** {@return the state of a claim} */
  public static ClaimConditions of(ResourceClaim claim) {
    ClaimConditions state = NONE;
    for (DeviceRequestAllocationResult result : results(claim)) {
      List<Condition> all =
          status(claim, result).map(AllocatedDeviceStatus::getConditions).orElse(List.of());
      if (isTrue(all, Driver.GANG_FAILED)) {
        return FAILED;
      }
      boolean isReady = isTrue(all, Driver.GANG_COMPLETE);
      state = state == WAITING || !isReady ? WAITING : COMPLETE;
    }
    return state;
  }

  private static boolean isTrue(List<Condition> all, String type) {
    return all.stream()
        .anyMatch(one -> type.equals(one.getType()) && "True".equals(one.getStatus()));
  }

  /** {@return the devices of vgpu that are bound on a condition} */
  private static List<DeviceRequestAllocationResult> results(ResourceClaim claim) {
    return devices(claim).stream()
        .filter(one -> one.getBindingConditions().contains(Driver.GANG_COMPLETE))
        .toList();
  }

  /** {@return the devices of vgpu that a claim has} */
  public static List<DeviceRequestAllocationResult> devices(ResourceClaim claim) {
    if (claim.getStatus() == null
        || claim.getStatus().getAllocation() == null
        || claim.getStatus().getAllocation().getDevices() == null) {
      return List.of();
    }
    return claim.getStatus().getAllocation().getDevices().getResults().stream()
        .filter(one -> Driver.NAME.equals(one.getDriver()))
        .toList();
  }

  /** {@return the devices of vgpu of which a claim takes something} */
  static List<DeviceRequestAllocationResult> taken(ResourceClaim claim) {
    return devices(claim).stream().filter(one -> ClaimNeed.takes(one.getAdminAccess())).toList();
  }

  private static Optional<AllocatedDeviceStatus> status(
      ResourceClaim claim, DeviceRequestAllocationResult result) {
    List<AllocatedDeviceStatus> all = claim.getStatus().getDevices();
    return all == null
        ? Optional.empty()
        : all.stream().filter(one -> isOf(one, result)).findFirst();
  }

  private static boolean isOf(AllocatedDeviceStatus status, DeviceRequestAllocationResult result) {
    return Objects.equals(status.getDriver(), result.getDriver())
        && Objects.equals(status.getPool(), result.getPool())
        && Objects.equals(status.getDevice(), result.getDevice())
        && Objects.equals(status.getShareID(), result.getShareID());
  }

  /** {@return when a claim was allocated; empty if it does not say so} */
  static Optional<Instant> allocated(ResourceClaim claim) {
    return instant(claim.getStatus().getAllocation().getAllocationTimestamp());
  }

  /** {@return a time of the API} */
  public static Optional<Instant> instant(@Nullable String text) {
    try {
      return text == null ? Optional.empty() : Optional.of(Instant.parse(text));
    } catch (DateTimeParseException e) {
      return Optional.empty();
    }
  }

  /** {@return a verdict's claim with the condition; what others wrote of devices stays} */
  public static ResourceClaim with(GangClaims.Verdict verdict, Instant now) {
    ResourceClaim claim = verdict.claim();
    Condition condition =
        new ConditionBuilder()
            .withType(verdict.isComplete() ? Driver.GANG_COMPLETE : Driver.GANG_FAILED)
            .withStatus("True")
            .withReason(verdict.isComplete() ? "GangComplete" : "GangIncomplete")
            .withMessage(verdict.message())
            .withLastTransitionTime(now.truncatedTo(ChronoUnit.SECONDS).toString())
            .build();
    List<AllocatedDeviceStatus> devices = new ArrayList<>();
    if (claim.getStatus().getDevices() != null) {
      devices.addAll(claim.getStatus().getDevices());
    }
    for (DeviceRequestAllocationResult result : results(claim)) {
      AllocatedDeviceStatus before =
          status(claim, result)
              .orElseGet(
                  () ->
                      new AllocatedDeviceStatusBuilder()
                          .withDriver(result.getDriver())
                          .withPool(result.getPool())
                          .withDevice(result.getDevice())
                          .withShareID(result.getShareID())
                          .build());
      devices.removeIf(one -> isOf(one, result));
      List<Condition> conditions = new ArrayList<>(before.getConditions());
      conditions.removeIf(one -> Objects.equals(one.getType(), condition.getType()));
      conditions.add(condition);
      devices.add(new AllocatedDeviceStatusBuilder(before).withConditions(conditions).build());
    }
    return new ResourceClaimBuilder(claim).editStatus().withDevices(devices).endStatus().build();
  }
}
