package dev.vgpu.spi;

import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * A driver that a jar contains, for machines without one: the emulator. Found by {@code
 * ServiceLoader}. Used only if no driver is installed and none is named.
 */
public interface GpuDriver {
  /** {@return the name that people see, for example {@code emulator}} */
  String name();

  /**
   * {@return its {@code libcuda.so.1}, a file that stays at least as long as this process runs}
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

  /**
   * {@return what the ids of its GPUs are unique in; empty: this machine} For example, emulated
   * GPUs of two directories are different GPUs with equal ids.
   */
  default String scope() {
    return "";
  }

  /** {@return the variables that a process needs to see the same GPUs} */
  Map<String, String> environment();
}
