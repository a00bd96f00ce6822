package dev.vgpu.nvml.mig.plan;

/**
 * An existing GPU instance.
 *
 * @param id its NVML number
 * @param profileId its profile, as NVML numbers them
 * @param start its first memory slice
 * @param memorySlices how many it takes
 * @param computeSlices how many it takes
 * @param holder its holder, in words; empty if it is idle
 * @param movable whether it may be created again elsewhere: ours, and idle or of offline work
 */
public record MigInstance(
    int id,
    int profileId,
    int start,
    int memorySlices,
    int computeSlices,
    String holder,
    boolean movable) {}
