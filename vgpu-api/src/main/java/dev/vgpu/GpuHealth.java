package dev.vgpu;

/** Whether a GPU can be relied on. More may come. */
public enum GpuHealth {
  /** Its driver answers, and tells of no fault. */
  HEALTHY,
  /** It works, but its driver told of a fault that may come again, or needs a reset. */
  DEGRADED,
  /**
   * It does not answer: it fell off the bus, was unplugged, or its driver is gone. Nothing new is
   * granted on it until it is back.
   */
  LOST
}
