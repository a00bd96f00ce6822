package dev.vgpu.nvml.mig;

import dev.vgpu.nvml.binding.NativeCalls;
import dev.vgpu.nvml.binding.Nvml;
import dev.vgpu.nvml.binding.NvmlMig;
import dev.vgpu.nvml.binding.NvmlTypes;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.MemorySize;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Reads how a GPU can be partitioned. If NVML does not report the places, as before driver 470,
 * they come from the table for GPUs with as many slices. Confined to one thread.
 */
final class MigGeometryReader {
  private static final int MOST_INSTANCES = 64;
  private static final int MEBIBYTE_SHIFT = 20;

  private final NvmlMig mig;
  private final IntConsumer check;
  private final ByteBuffer number = NativeCalls.memory(Long.BYTES);

  /**
   * Takes the functions.
   *
   * @param mig of the library
   * @param check throws unless a code is success
   */
  MigGeometryReader(NvmlMig mig, IntConsumer check) {
    this.mig = mig;
    this.check = check;
  }

  /** The places of a profile: the starts, and the memory slices that each instance takes. */
  private record Places(int size, List<Integer> starts) {}

  /**
   * {@return whether what was asked for exists} Any other error does not mean that it is absent: a
   * geometry with a part of the profiles would hide instances.
   */
  private boolean isThere(int code) {
    if (code == Nvml.NVML_ERROR_NOT_SUPPORTED
        || code == Nvml.NVML_ERROR_NOT_FOUND
        || code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND
        || code == NvmlTypes.NVML_ERROR_INVALID_ARGUMENT) {
      return false;
    }
    check.accept(code);
    return true;
  }

  /** {@return the geometry; null if the GPU cannot be partitioned} Throws if that is not clear. */
  @Nullable MigGeometry read(long device) {
    Map<Integer, ByteBuffer> infos = new TreeMap<>();
    int compute = 0;
    for (int i = 0; i < NvmlMig.GPU_INSTANCE_PROFILES; i++) {
      ByteBuffer info = NativeCalls.memory(NvmlMig.PROFILE_BYTES);
      if (isThere(mig.nvmlDeviceGetGpuInstanceProfileInfo(device, i, info))) {
        infos.put(i, info);
        compute = Math.max(compute, info.getInt(NvmlMig.PROFILE_SLICES));
      }
    }
    List<MigProfile> profiles = new ArrayList<>();
    int memory = 0;
    for (Map.Entry<Integer, ByteBuffer> each : infos.entrySet()) {
      MigProfile profile = profile(device, each.getKey(), each.getValue(), compute);
      if (profile != null) {
        profiles.add(profile);
        for (int start : profile.starts()) {
          memory = Math.max(memory, start + profile.memorySlices());
        }
      }
    }
    return profiles.isEmpty() ? null : new MigGeometry(compute, memory, profiles);
  }

  private @Nullable MigProfile profile(long device, int index, ByteBuffer info, int compute) {
    int id = info.getInt(NvmlMig.PROFILE_ID);
    int slices = info.getInt(NvmlMig.PROFILE_SLICES);
    long mebibytes = info.getLong(NvmlMig.PROFILE_MEMORY_MB);
    Places places = places(device, id, compute);
    if (places.starts().isEmpty() || places.size() < 1 || slices < 1 || mebibytes < 0) {
      return null;
    }
    return new MigProfile(
        id,
        profileName(device, index, slices, mebibytes),
        slices,
        places.size(),
        info.getInt(NvmlMig.PROFILE_COUNT),
        places.starts(),
        MemorySize.ofMebibytes(mebibytes),
        info.getInt(NvmlMig.PROFILE_SMS));
  }

  private Places places(long device, int id, int compute) {
    ByteBuffer placements = NativeCalls.memory(MOST_INSTANCES * NvmlMig.PLACEMENT_BYTES);
    number.putInt(0, MOST_INSTANCES);
    int code = mig.nvmlDeviceGetGpuInstancePossiblePlacements_v2(device, id, placements, number);
    if (code == Nvml.NVML_ERROR_FUNCTION_NOT_FOUND || code == Nvml.NVML_ERROR_NOT_SUPPORTED) {
      return MigGeometry.known(compute)
          .flatMap(table -> table.profile(id))
          .map(profile -> new Places(profile.memorySlices(), profile.starts()))
          .orElse(new Places(0, List.of()));
    }
    boolean isThere = isThere(code);
    int count = Math.max(0, Math.min(MOST_INSTANCES, number.getInt(0)));
    int size = 0;
    List<Integer> starts = new ArrayList<>();
    for (int i = 0; isThere && i < count; i++) {
      starts.add(placements.getInt(i * NvmlMig.PLACEMENT_BYTES + NvmlMig.PLACEMENT_START));
      size = placements.getInt(i * NvmlMig.PLACEMENT_BYTES + NvmlMig.PLACEMENT_SIZE);
    }
    return new Places(size, starts);
  }

  private String profileName(long device, int index, int slices, long mebibytes) {
    ByteBuffer info = NativeCalls.memory(NvmlMig.PROFILE_V2_BYTES);
    info.putInt(0, NvmlMig.PROFILE_V2_VERSION);
    if (mig.nvmlDeviceGetGpuInstanceProfileInfoV(device, index, info) == Nvml.NVML_SUCCESS) {
      info.put(info.capacity() - 1, (byte) 0);
      ByteBuffer name = NativeCalls.memory(NvmlMig.PROFILE_V2_BYTES - NvmlMig.PROFILE_V2_NAME);
      name.put(0, info, NvmlMig.PROFILE_V2_NAME, name.capacity());
      String text = NativeCalls.text(name);
      return text.startsWith("MIG ") ? text.substring("MIG ".length()) : text;
    }
    // A driver before 525: the name that nvidia-smi would print.
    long gibibytes = (mebibytes + (1 << (MEBIBYTE_SHIFT / 2 - 1))) >> (MEBIBYTE_SHIFT / 2);
    boolean media = index == 7 || index == 8;
    return slices + "g." + gibibytes + "gb" + (media ? "+me" : "");
  }
}
