package dev.vgpu.watch;

/** Whether a GPU can be relied on. New values may be added. */
public enum GpuHealth {
  /** Its driver answers, and reports no fault. */
  HEALTHY,
  /** It works, but its driver reported a fault that may recur or needs a reset. */
  DEGRADED,
  /**
   * It does not answer: it fell off the bus, was unplugged, or its driver is gone. Nothing new is
   * granted on it until it is back.
   */
  LOST
}
