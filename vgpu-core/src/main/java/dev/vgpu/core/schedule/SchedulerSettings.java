package dev.vgpu.core.schedule;

import dev.vgpu.GpuSettings;

/**
 * What a {@link ShareScheduler} goes by. Immutable.
 *
 * @param shortestTurnNs how long a tenant keeps the GPU at least while others of its level wait;
 *     above 0
 * @param longestTurnNs how long at most, however dear a hand-over is; {@code shortestTurnNs} or
 *     more
 * @param lingerNs how long a tenant that is next in line anyway may be idle in its turn; 0 or more
 * @param offlineFloor the least part of the GPU for offline tenants with work, 0 to 1
 * @param strict whether tenants never use the GPU together, even where policies allow it
 * @param lockoutNs how long a tenant is held back at most to pay back an overrun. A debt that would
 *     hold it back for longer is forgiven, so that one giant call does not lock its tenant out
 */
public record SchedulerSettings(
    long shortestTurnNs,
    long longestTurnNs,
    long lingerNs,
    double offlineFloor,
    boolean strict,
    long lockoutNs) {
  /** How long an overrun may hold a tenant back. */
  public static final long LOCKOUT_NS = 30_000_000_000L;

  /** Checks what does not fit together. */
  public SchedulerSettings {
    if (shortestTurnNs <= 0
        || longestTurnNs < shortestTurnNs
        || lingerNs < 0
        || !(offlineFloor >= 0 && offlineFloor <= 1)
        || lockoutNs <= 0) {
      throw new IllegalArgumentException(
          "a scheduler cannot go by this: shortestTurnNs="
              + shortestTurnNs
              + " longestTurnNs="
              + longestTurnNs
              + " lingerNs="
              + lingerNs
              + " offlineFloor="
              + offlineFloor
              + " lockoutNs="
              + lockoutNs);
    }
  }

  /**
   * {@return the settings that a GPU's ask for}
   *
   * @param settings the GPU's
   */
  public static SchedulerSettings from(GpuSettings settings) {
    return new SchedulerSettings(
        settings.shortestTurn().toNanos(),
        settings.longestTurn().toNanos(),
        settings.idleLinger().toNanos(),
        settings.offlineFloorPercent() / 100.0,
        settings.sharing() == GpuSettings.Sharing.STRICT,
        LOCKOUT_NS);
  }

  /**
   * {@return how long a tenant may be idle and still keep the time that it was owed} Longer
   * idleness means that it had no work, and what it did not use is gone.
   */
  long memoryNs() {
    return 5 * shortestTurnNs;
  }
}
