package dev.vgpu.k8s.scheduler.claim;

import dev.vgpu.k8s.names.Driver;
import io.fabric8.kubernetes.api.model.resource.v1.Device;
import io.fabric8.kubernetes.api.model.resource.v1.DeviceCapacity;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSlice;
import io.fabric8.kubernetes.api.model.resource.v1.ResourceSliceSpec;
import java.util.ArrayList;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.List;

/**
 * A GPU as a slice tells it, or a part of a GPU in MIG mode.
 *
 * @param pool the slice's pool
 * @param name the device's name
 * @param share percent, at most 100
 * @param memory bytes
 * @param isTainted whether it has a taint
 * @param isPart whether it takes from counters: kube-scheduler alone counts these
 */
record SliceGpu(
    String pool, String name, long share, long memory, boolean isTainted, boolean isPart) {
  /** Reads slices. A slice that it has read before, it does not read again. Not thread-safe. */
  static final class Reader {
    /** A slice that changes is another object. */
    private IdentityHashMap<ResourceSlice, List<SliceGpu>> read = new IdentityHashMap<>();

    /** {@return vgpu's GPUs of all slices of the cluster, without those that have no name} */
    List<SliceGpu> read(Collection<ResourceSlice> slices) {
      IdentityHashMap<ResourceSlice, List<SliceGpu>> before = read;
      read = new IdentityHashMap<>();
      List<SliceGpu> all = new ArrayList<>();
      for (ResourceSlice slice : slices) {
        List<SliceGpu> known = before.get(slice);
        List<SliceGpu> gpus = known == null ? of(slice) : known;
        read.put(slice, gpus);
        all.addAll(gpus);
      }
      return all;
    }
  }

  private static List<SliceGpu> of(ResourceSlice slice) {
    ResourceSliceSpec spec = slice.getSpec();
    if (spec == null
        || !Driver.NAME.equals(spec.getDriver())
        || spec.getPool() == null
        || spec.getPool().getName() == null
        || spec.getDevices() == null) {
      return List.of();
    }
    String pool = spec.getPool().getName();
    return spec.getDevices().stream()
        .filter(device -> device.getName() != null)
        .map(
            device ->
                new SliceGpu(
                    pool,
                    device.getName(),
                    Math.min(ClaimNeed.WHOLE, capacity(device, Driver.SHARE)),
                    capacity(device, Driver.MEMORY),
                    device.getTaints() != null && !device.getTaints().isEmpty(),
                    device.getConsumesCounters() != null
                        && !device.getConsumesCounters().isEmpty()))
        .toList();
  }

  private static long capacity(Device device, String name) {
    DeviceCapacity capacity = device.getCapacity() == null ? null : device.getCapacity().get(name);
    return capacity == null || capacity.getValue() == null
        ? 0
        : ClaimNeed.amount(capacity.getValue());
  }
}
