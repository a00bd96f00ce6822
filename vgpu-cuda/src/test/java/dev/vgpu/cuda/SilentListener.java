package dev.vgpu.cuda;

import dev.vgpu.spi.EnforcedLease;

/** A listener that ignores all events. */
public final class SilentListener implements EnforcedLease.Listener {
  @Override
  public void wanted() {}

  @Override
  public void drained() {}

  @Override
  public void processes(int attached) {}
}
