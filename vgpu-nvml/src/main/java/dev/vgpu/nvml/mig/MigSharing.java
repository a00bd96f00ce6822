package dev.vgpu.nvml.mig;

import dev.vgpu.Capabilities;
import dev.vgpu.GpuId;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The finer grain: several leases in one GPU instance, each with a compute instance of its own.
 * Their compute slices are apart; memory, its bandwidth, and what a fault may reach are not: each
 * quota is kept by the backend beneath alone. So who demands isolation from faults is alone.
 */
final class MigSharing {
  private MigSharing() {}

  /** What a lease takes of an instance of its own. */
  static MigRecord.Terms terms(
      VirtualGpuRequest request, MigProfile profile, MigGeometry geometry) {
    boolean isAlone = isAlone(request);
    // A fixed share is never more than the share; any other may use what else the instance has.
    int slices =
        !isAlone && request.policy() == SharePolicy.FIXED_SHARE
            ? Math.min(profile.computeSlices(), needed(request, geometry))
            : profile.computeSlices();
    return new MigRecord.Terms(slices, request.memory().bytes(), isAlone);
  }

  /** What it takes of one that others are in. */
  static MigRecord.Terms shared(VirtualGpuRequest request, MigGeometry geometry) {
    return new MigRecord.Terms(needed(request, geometry), request.memory().bytes(), false);
  }

  private static boolean isAlone(VirtualGpuRequest request) {
    return request.requires().faultIsolation() == Capabilities.FaultIsolation.ISOLATED;
  }

  private static int needed(VirtualGpuRequest request, MigGeometry geometry) {
    int percent = request.computePercent().orElse(0);
    return Math.max(1, (percent * geometry.computeSlices() + 99) / 100);
  }

  /** Those of our instances that have room for it, the fullest first. */
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

  /** The records of others about the same instance. */
  static List<MigRecord> others(MigRecord record, Collection<MigRecord> records) {
    return records.stream()
        .filter(other -> !other.lease().equals(record.lease()) && other.shares(record))
        .toList();
  }

  /** The compute instances of some records. */
  static Set<GpuId> devices(Collection<MigRecord> records) {
    return records.stream()
        .flatMap(record -> record.device().stream())
        .collect(Collectors.toUnmodifiableSet());
  }
}
