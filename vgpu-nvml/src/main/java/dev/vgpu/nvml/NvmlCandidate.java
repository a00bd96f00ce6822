package dev.vgpu.nvml;

import dev.vgpu.spi.GpuDriver;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An NVML library that may be used.
 *
 * @param name the provider's name for people: {@code nvml}, or that of the driver that a jar brings
 * @param nvml the library
 * @param driver the driver that a jar brings, or null if it is one of the machine's
 * @param scratch directories where a file can be put for a moment
 */
record NvmlCandidate(String name, Path nvml, @Nullable GpuDriver driver, List<Path> scratch) {}
