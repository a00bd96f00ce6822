package dev.vgpu.nvml.mig;

import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * Several leases in one GPU instance, each with its own compute instance. They have separate
 * compute slices, but share memory, its bandwidth, and the fault domain; only the backend beneath
 * enforces the quotas. So a lease that demands fault isolation is alone, and one that names a part.
 */
final class MigSharing {
  private MigSharing() {}

  /** {@return what a lease takes of its own instance} */
  static MigRecord.Terms terms(
      VirtualGpuRequest request, MigProfile profile, MigGeometry geometry) {
    boolean isAlone = isAlone(request);
    // A fixed share never exceeds the share; any other policy may use the rest of the instance.
    int slices =
        !isAlone && request.policy() == SharePolicy.FIXED_SHARE
            ? Math.min(profile.computeSlices(), needed(request, geometry))
            : profile.computeSlices();
    return new MigRecord.Terms(slices, request.memory().bytes(), isAlone);
  }

  /** {@return what it takes of an instance that other leases use} */
  static MigRecord.Terms shared(VirtualGpuRequest request, MigGeometry geometry) {
    return new MigRecord.Terms(needed(request, geometry), request.memory().bytes(), false);
  }

  private static boolean isAlone(VirtualGpuRequest request) {
    return request.part().isPresent()
        || request.requires().faultIsolation() == Capabilities.FaultIsolation.ISOLATED;
  }

  private static int needed(VirtualGpuRequest request, MigGeometry geometry) {
    int percent = request.computePercent().orElse(0);
    return Math.max(1, (percent * geometry.computeSlices() + 99) / 100);
  }

  /** {@return those of our instances that have room for the request, the fullest first} */
  static List<MigState.Instance> hosts(
      MigState state, VirtualGpuRequest request, Collection<MigRecord> records) {
    Optional<MigGeometry> geometry = state.geometry();
    if (geometry.isEmpty() || isAlone(request)) {
      return List.of();
    }
    int slices = needed(request, geometry.get());
    return state.instances().stream()
        .filter(each -> each.freeSlices() >= slices)
        .filter(each -> hasRoom(each, state.gpu(), geometry.get(), request, records))
        .sorted(Comparator.comparingInt(MigState.Instance::freeSlices))
        .toList();
  }

  private static boolean hasRoom(
      MigState.Instance instance,
      GpuId gpu,
      MigGeometry geometry,
      VirtualGpuRequest request,
      Collection<MigRecord> records) {
    List<MigRecord> inside =
        records.stream()
            .filter(record -> record.gpu().equals(gpu))
            .filter(record -> record.instance().equals(Optional.of(instance.id())))
            .toList();
    long bytes = inside.stream().mapToLong(record -> record.terms().bytes()).sum();
    return inside.stream().anyMatch(record -> record.device().filter(instance::has).isPresent())
        && inside.stream().noneMatch(record -> record.terms().isAlone())
        && geometry
            .profile(instance.profileId())
            .filter(profile -> profile.memory().bytes() - bytes >= request.memory().bytes())
            .isPresent();
  }

  /** {@return the records of other leases about the same instance} */
  static List<MigRecord> others(MigRecord record, Collection<MigRecord> records) {
    return records.stream()
        .filter(other -> !other.lease().equals(record.lease()) && other.shares(record))
        .toList();
  }

  /** {@return the MIG devices of some records} */
  static Set<GpuId> devices(Collection<MigRecord> records) {
    return records.stream()
        .flatMap(record -> record.device().stream())
        .collect(Collectors.toUnmodifiableSet());
  }
}
