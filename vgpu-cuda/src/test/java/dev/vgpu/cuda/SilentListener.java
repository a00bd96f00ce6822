package dev.vgpu.cuda;

import dev.vgpu.spi.EnforcedLease;

/** For whom it does not matter what a lease tells. */
public final class SilentListener implements EnforcedLease.Listener {
  @Override
  public void wanted() {}

  @Override
  public void drained() {}

  @Override
  public void processes(int attached) {}
}
