package dev.vgpu.core.schedule;

import dev.vgpu.simulation.Workload;

/** Kernels of one length, with a pause of the host after each. */
record Pausing(long kernelNs, long pauseNs) implements Workload {
  @Override
  public boolean hasKernel() {
    return true;
  }

  @Override
  public long takeKernel() {
    return kernelNs;
  }

  @Override
  public long kernelEnded(long nowNs) {
    return pauseNs;
  }

  @Override
  public void cancelled(long ofNs) {}
}
