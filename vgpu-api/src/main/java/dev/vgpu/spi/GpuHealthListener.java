package dev.vgpu.spi;

import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuHealth;

/** Receives health changes of GPUs from a {@link GpuProvider}. Called on the provider's thread. */
public interface GpuHealthListener {
  /**
   * A GPU's health changed. Every GPU counts as healthy until this is called for it.
   *
   * @param gpu one of {@link GpuProvider#gpus()}
   * @param health the new state
   * @param reason why, in words for people
   */
  void changed(GpuId gpu, GpuHealth health, String reason);

  /**
   * A GPU's driver reported a fault that does not change the GPU's health, usually a program's own
   * fault.
   *
   * @param gpu one of {@link GpuProvider#gpus()}
   * @param reason the fault, in words for people
   */
  void fault(GpuId gpu, String reason);

  /**
   * A GPU appeared after the GPUs were listed.
   *
   * @param gpu a GPU that {@link GpuProvider#gpus()} has not returned before
   */
  default void appeared(GpuId gpu) {}
}
