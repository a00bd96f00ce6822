package dev.vgpu.spi;

import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * A driver that a jar brings along, for machines that have none: the emulator. {@code
 * ServiceLoader} finds it; used only where no driver is installed and none is named.
 */
public interface GpuDriver {
  /** {@return the name that people see, for example {@code emulator}} */
  String name();

  /**
   * {@return its {@code libcuda.so.1}, a file that stays as long as this process runs, at least}
   *
   * @throws dev.vgpu.VgpuException if it cannot be unpacked here
   */
  Path cudaLibrary();

  /**
   * {@return its {@code libnvidia-ml.so.1}}
   *
   * @throws dev.vgpu.VgpuException if it cannot be unpacked here
   */
  Path nvmlLibrary();

  /**
   * {@return its {@code nvidia-cuda-mps-control}; empty if it has none}
   *
   * @throws dev.vgpu.VgpuException if it cannot be unpacked here
   */
  default Optional<Path> mpsControl() {
    return Optional.empty();
  }

  /** {@return the variables that a process needs in order to see the same GPUs} */
  Map<String, String> environment();
}
