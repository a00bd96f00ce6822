package dev.vgpu.nvml.mig.plan;

/**
 * A GPU instance that there is.
 *
 * @param id NVML's number of it
 * @param profileId the kind, as NVML numbers them
 * @param start its first memory slice
 * @param memorySlices how many it takes
 * @param computeSlices how many it takes
 * @param holder who has it, in words; empty: it is idle
 * @param movable whether it may be made anew elsewhere: ours, and idle or of offline work
 */
public record MigInstance(
    int id,
    int profileId,
    int start,
    int memorySlices,
    int computeSlices,
    String holder,
    boolean movable) {}
