package dev.vgpu.core.schedule;

import dev.vgpu.GpuPoolOptions;

/**
 * What a {@link ShareScheduler} goes by. Immutable.
 *
 * @param turnNs how long a tenant keeps the GPU while others of its level wait; above 0
 * @param lingerNs how long a tenant that is next in line anyway may be idle in its turn; 0 or more
 * @param offlineFloor the least part of the GPU for offline tenants with work, 0 to 1
 * @param lockoutNs how long a tenant is held back at most to pay back an overrun. A debt that would
 *     hold it back for longer is forgiven, so that one giant call does not lock its tenant out
 */
public record SchedulerSettings(long turnNs, long lingerNs, double offlineFloor, long lockoutNs) {
  /** How long an overrun may hold a tenant back. */
  public static final long LOCKOUT_NS = 30_000_000_000L;

  /**
   * {@return the settings that a pool's options ask for}
   *
   * @param options the pool's
   */
  public static SchedulerSettings from(GpuPoolOptions options) {
    return new SchedulerSettings(
        options.turnLength().toNanos(),
        options.idleLinger().toNanos(),
        options.offlineFloorPercent() / 100.0,
        LOCKOUT_NS);
  }

  /**
   * {@return how long a tenant may be idle and still keep the time that it was owed} Longer
   * idleness means that it had no work, and what it did not use is gone.
   */
  long memoryNs() {
    return 5 * turnNs;
  }
}
