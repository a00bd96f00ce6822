package dev.vgpu.spi;

import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;

/** Is told by a {@link GpuProvider} how its GPUs are. Called on the provider's thread. */
public interface GpuHealthListener {
  /**
   * A GPU's health has changed. Until this is called all are taken to be healthy.
   *
   * @param gpu one of {@link GpuProvider#gpus()}
   * @param health how it is from now on
   * @param reason why, in words for people
   */
  void changed(GpuId gpu, GpuHealth health, String reason);

  /**
   * A GPU's driver told of a fault that leaves its health as it is: a program's own, as a rule.
   *
   * @param gpu one of {@link GpuProvider#gpus()}
   * @param reason which one, in words for people
   */
  void fault(GpuId gpu, String reason);

  /**
   * A GPU is there that was not when the GPUs were asked for.
   *
   * @param gpu none of those that {@link GpuProvider#gpus()} gave until now
   */
  default void appeared(GpuId gpu) {}
}
