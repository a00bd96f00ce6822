package dev.vgpu.spi;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;

/** The implementation behind {@link GpuPool#open()}. There is one: vgpu-core. */
public interface GpuPoolProvider {
  /**
   * Opens a pool.
   *
   * @param options the pool's options
   * @return the pool
   */
  GpuPool open(GpuPoolOptions options);
}
