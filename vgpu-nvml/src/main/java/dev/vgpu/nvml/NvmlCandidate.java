package dev.vgpu.nvml;

import dev.vgpu.spi.GpuDriver;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An NVML library that may be used.
 *
 * @param name the provider's name for people: {@code nvml}, or the name of a driver from a jar
 * @param nvml the library
 * @param driver the driver from a jar; null if the library is the machine's own
 * @param scratch directories for a temporary file
 */
record NvmlCandidate(String name, Path nvml, @Nullable GpuDriver driver, List<Path> scratch) {}
