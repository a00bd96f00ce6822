package dev.vgpu.nvml.binding;

import java.nio.ByteBuffer;

/**
 * The NVML functions that partition GPUs into MIG instances, under their C names. Like {@link
 * Nvml}; safe for use by several threads.
 */
public final class NvmlMig {
  /** {@code NVML_GPU_INSTANCE_PROFILE_COUNT}, as of NVML 13. */
  public static final int GPU_INSTANCE_PROFILES = 0x12;

  /** {@code NVML_COMPUTE_INSTANCE_PROFILE_COUNT}, as of NVML 13. */
  public static final int COMPUTE_INSTANCE_PROFILES = 9;

  /** {@code sizeof(nvmlGpuInstanceProfileInfo_t)}. */
  public static final int PROFILE_BYTES = 48;

  /** {@code offsetof(nvmlGpuInstanceProfileInfo_t, id)}. */
  public static final int PROFILE_ID = 0;

  /** {@code offsetof(nvmlGpuInstanceProfileInfo_t, sliceCount)}. */
  public static final int PROFILE_SLICES = 8;

  /** {@code offsetof(nvmlGpuInstanceProfileInfo_t, instanceCount)}. */
  public static final int PROFILE_COUNT = 12;

  /** {@code offsetof(nvmlGpuInstanceProfileInfo_t, multiprocessorCount)}. */
  public static final int PROFILE_SMS = 16;

  /** {@code offsetof(nvmlGpuInstanceProfileInfo_t, memorySizeMB)}. */
  public static final int PROFILE_MEMORY_MB = 40;

  /** {@code sizeof(nvmlGpuInstanceProfileInfo_v2_t)}. */
  public static final int PROFILE_V2_BYTES = 152;

  /** {@code offsetof(nvmlGpuInstanceProfileInfo_v2_t, name)}. */
  public static final int PROFILE_V2_NAME = 56;

  /** {@code sizeof(nvmlGpuInstancePlacement_t)}. */
  public static final int PLACEMENT_BYTES = 8;

  /** {@code offsetof(nvmlGpuInstancePlacement_t, start)}. */
  public static final int PLACEMENT_START = 0;

  /** {@code offsetof(nvmlGpuInstancePlacement_t, size)}. */
  public static final int PLACEMENT_SIZE = 4;

  /** {@code sizeof(nvmlGpuInstanceInfo_t)}. */
  public static final int GPU_INSTANCE_BYTES = 24;

  /** {@code offsetof(nvmlGpuInstanceInfo_t, id)}. */
  public static final int GPU_INSTANCE_ID = 8;

  /** {@code offsetof(nvmlGpuInstanceInfo_t, profileId)}. */
  public static final int GPU_INSTANCE_PROFILE = 12;

  /** {@code offsetof(nvmlGpuInstanceInfo_t, placement)}. */
  public static final int GPU_INSTANCE_PLACEMENT = 16;

  /** {@code sizeof(nvmlComputeInstanceProfileInfo_t)}. */
  public static final int PART_PROFILE_BYTES = 36;

  /** {@code offsetof(nvmlComputeInstanceProfileInfo_t, id)}. */
  public static final int PART_PROFILE_ID = 0;

  /** {@code offsetof(nvmlComputeInstanceProfileInfo_t, sliceCount)}. */
  public static final int PART_PROFILE_SLICES = 4;

  /** {@code sizeof(nvmlComputeInstanceInfo_t)}. */
  public static final int PART_BYTES = 32;

  /** {@code offsetof(nvmlComputeInstanceInfo_t, id)}. */
  public static final int PART_ID = 16;

  /** {@code offsetof(nvmlComputeInstanceInfo_t, placement.size)}. */
  public static final int PART_SLICES = 28;

  /** {@code nvmlGpuInstanceProfileInfo_v2}, the value of the structure's field {@code version}. */
  public static final int PROFILE_V2_VERSION = PROFILE_V2_BYTES | 2 << 24;

  private final Nvml nvml;

  /**
   * Binds the same library.
   *
   * @param nvml the bound library
   */
  public NvmlMig(Nvml nvml) {
    this.nvml = nvml;
  }

  /**
   * {@return the code of {@code nvmlDeviceSetMigMode}}
   *
   * @param device the device
   * @param mode 0 or {@link Nvml#NVML_DEVICE_MIG_ENABLE}
   * @param activationStatus nvmlReturn_t, out
   */
  public int nvmlDeviceSetMigMode(long device, int mode, ByteBuffer activationStatus) {
    return nvml.call("nvmlDeviceSetMigMode", device, mode, activationStatus);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuInstanceProfileInfo}}
   *
   * @param device the device
   * @param profile its number, below {@link #GPU_INSTANCE_PROFILES}
   * @param info nvmlGpuInstanceProfileInfo_t, out
   */
  public int nvmlDeviceGetGpuInstanceProfileInfo(long device, int profile, ByteBuffer info) {
    return nvml.call("nvmlDeviceGetGpuInstanceProfileInfo", device, profile, info);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuInstanceProfileInfoV}}
   *
   * @param device the device
   * @param profile its number, below {@link #GPU_INSTANCE_PROFILES}
   * @param info nvmlGpuInstanceProfileInfo_v2_t with its version set, out
   */
  public int nvmlDeviceGetGpuInstanceProfileInfoV(long device, int profile, ByteBuffer info) {
    return nvml.call("nvmlDeviceGetGpuInstanceProfileInfoV", device, profile, info);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuInstancePossiblePlacements_v2}}
   *
   * @param device the device
   * @param profileId the id of a profile
   * @param placements array of nvmlGpuInstancePlacement_t, out
   * @param count unsigned int; in: room in placements; out: how many there are
   */
  public int nvmlDeviceGetGpuInstancePossiblePlacements_v2(
      long device, int profileId, ByteBuffer placements, ByteBuffer count) {
    return nvml.call(
        "nvmlDeviceGetGpuInstancePossiblePlacements_v2", device, profileId, placements, count);
  }

  /**
   * {@return the code of {@code nvmlDeviceCreateGpuInstanceWithPlacement}}
   *
   * @param device the device
   * @param profileId the id of a profile
   * @param placement nvmlGpuInstancePlacement_t
   * @param gpuInstance nvmlGpuInstance_t, out
   */
  public int nvmlDeviceCreateGpuInstanceWithPlacement(
      long device, int profileId, ByteBuffer placement, ByteBuffer gpuInstance) {
    return nvml.call(
        "nvmlDeviceCreateGpuInstanceWithPlacement", device, profileId, placement, gpuInstance);
  }

  /**
   * {@return the code of {@code nvmlGpuInstanceDestroy}}
   *
   * @param gpuInstance the instance
   */
  public int nvmlGpuInstanceDestroy(long gpuInstance) {
    return nvml.call("nvmlGpuInstanceDestroy", gpuInstance);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuInstances}}
   *
   * @param device the device
   * @param profileId the id of a profile
   * @param gpuInstances array of nvmlGpuInstance_t with room for all, out
   * @param count unsigned int, out
   */
  public int nvmlDeviceGetGpuInstances(
      long device, int profileId, ByteBuffer gpuInstances, ByteBuffer count) {
    return nvml.call("nvmlDeviceGetGpuInstances", device, profileId, gpuInstances, count);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuInstanceById}}
   *
   * @param device the device
   * @param id the instance's
   * @param gpuInstance nvmlGpuInstance_t, out
   */
  public int nvmlDeviceGetGpuInstanceById(long device, int id, ByteBuffer gpuInstance) {
    return nvml.call("nvmlDeviceGetGpuInstanceById", device, id, gpuInstance);
  }

  /**
   * {@return the code of {@code nvmlGpuInstanceGetInfo}}
   *
   * @param gpuInstance the instance
   * @param info nvmlGpuInstanceInfo_t, out
   */
  public int nvmlGpuInstanceGetInfo(long gpuInstance, ByteBuffer info) {
    return nvml.call("nvmlGpuInstanceGetInfo", gpuInstance, info);
  }

  /**
   * {@return the code of {@code nvmlGpuInstanceGetComputeInstanceProfileInfo}}
   *
   * @param gpuInstance the instance
   * @param profile its number, below {@link #COMPUTE_INSTANCE_PROFILES}
   * @param engProfile 0: shared engines
   * @param info nvmlComputeInstanceProfileInfo_t, out
   */
  public int nvmlGpuInstanceGetComputeInstanceProfileInfo(
      long gpuInstance, int profile, int engProfile, ByteBuffer info) {
    return nvml.call(
        "nvmlGpuInstanceGetComputeInstanceProfileInfo", gpuInstance, profile, engProfile, info);
  }

  /**
   * {@return the code of {@code nvmlGpuInstanceCreateComputeInstance}}
   *
   * @param gpuInstance the instance
   * @param profileId the id of a profile
   * @param computeInstance nvmlComputeInstance_t, out
   */
  public int nvmlGpuInstanceCreateComputeInstance(
      long gpuInstance, int profileId, ByteBuffer computeInstance) {
    return nvml.call(
        "nvmlGpuInstanceCreateComputeInstance", gpuInstance, profileId, computeInstance);
  }

  /**
   * {@return the code of {@code nvmlComputeInstanceDestroy}}
   *
   * @param computeInstance the instance
   */
  public int nvmlComputeInstanceDestroy(long computeInstance) {
    return nvml.call("nvmlComputeInstanceDestroy", computeInstance);
  }

  /**
   * {@return the code of {@code nvmlGpuInstanceGetComputeInstances}}
   *
   * @param gpuInstance the instance
   * @param profileId the id of a profile
   * @param computeInstances array of nvmlComputeInstance_t with room for all, out
   * @param count unsigned int, out
   */
  public int nvmlGpuInstanceGetComputeInstances(
      long gpuInstance, int profileId, ByteBuffer computeInstances, ByteBuffer count) {
    return nvml.call(
        "nvmlGpuInstanceGetComputeInstances", gpuInstance, profileId, computeInstances, count);
  }

  /**
   * {@return the code of {@code nvmlGpuInstanceGetComputeInstanceById}}
   *
   * @param gpuInstance the instance
   * @param id the compute instance's
   * @param computeInstance nvmlComputeInstance_t, out
   */
  public int nvmlGpuInstanceGetComputeInstanceById(
      long gpuInstance, int id, ByteBuffer computeInstance) {
    return nvml.call("nvmlGpuInstanceGetComputeInstanceById", gpuInstance, id, computeInstance);
  }

  /**
   * {@return the code of {@code nvmlComputeInstanceGetInfo_v2}}
   *
   * @param computeInstance the instance
   * @param info nvmlComputeInstanceInfo_t, out
   */
  public int nvmlComputeInstanceGetInfo_v2(long computeInstance, ByteBuffer info) {
    return nvml.call("nvmlComputeInstanceGetInfo_v2", computeInstance, info);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetGpuInstanceId}}
   *
   * @param device a MIG device
   * @param id unsigned int, out
   */
  public int nvmlDeviceGetGpuInstanceId(long device, ByteBuffer id) {
    return nvml.call("nvmlDeviceGetGpuInstanceId", device, id);
  }

  /**
   * {@return the code of {@code nvmlDeviceGetComputeInstanceId}}
   *
   * @param device a MIG device
   * @param id unsigned int, out
   */
  public int nvmlDeviceGetComputeInstanceId(long device, ByteBuffer id) {
    return nvml.call("nvmlDeviceGetComputeInstanceId", device, id);
  }
}
