package dev.vgpu.core.pool;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;

/** The service behind {@link GpuPool#open()}, found by {@code ServiceLoader}. */
public final class NodePoolProvider implements GpuPool.Provider {
  /** For {@code ServiceLoader}. */
  public NodePoolProvider() {}

  @Override
  public GpuPool open(GpuPoolOptions options) {
    return NodeRegistry.open(options, Discovery.installed(), NanoClock.SYSTEM);
  }
}
