package dev.vgpu.nvml;

import dev.vgpu.MemorySize;
import java.util.Optional;

/**
 * A process that has a context on a GPU.
 *
 * @param pid in the pid namespace of the driver, which is the machine's
 * @param memory what it holds there; empty where the driver does not tell
 */
record GpuProcess(long pid, Optional<MemorySize> memory) {}
