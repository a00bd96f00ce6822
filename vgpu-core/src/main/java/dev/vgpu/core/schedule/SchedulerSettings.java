package dev.vgpu.core.schedule;

import dev.vgpu.GpuSettings;

/**
 * The settings of a {@link ShareScheduler}. Immutable.
 *
 * @param shortestTurnNs the shortest time that a tenant keeps the GPU while others of its level
 *     wait; above 0
 * @param longestTurnNs the longest such time, however expensive a hand-over is; at least {@code
 *     shortestTurnNs}
 * @param lingerNs how long a tenant that is next in line anyway may be idle in its turn; 0 or more
 * @param offlineFloor the minimum part of the GPU for offline tenants with work, 0 to 1
 * @param strict whether tenants never use the GPU together, even if policies allow it
 * @param lockoutNs how long a tenant is held back at most to pay back an overrun. A debt that would
 *     take longer is forgiven, so that one giant call does not lock its tenant out
 */
public record SchedulerSettings(
    long shortestTurnNs,
    long longestTurnNs,
    long lingerNs,
    double offlineFloor,
    boolean strict,
    long lockoutNs) {
  /** The lockout of {@link #from}: how long an overrun may hold a tenant back. */
  public static final long LOCKOUT_NS = 30_000_000_000L;

  /** The window in which shares are to be accurate. */
  static final double WINDOW_NS = 1e9;

  /**
   * How much one turn may change the lag of any tenant, unless hand-overs are so expensive that
   * longer turns are more accurate. It keeps a window within one point of its ideal part of the
   * work, including overruns of 2 ms.
   */
  static final double ACCURACY_NS = 4_500_000;

  /** Checks the values and their combination. */
  public SchedulerSettings {
    if (shortestTurnNs <= 0
        || longestTurnNs < shortestTurnNs
        || lingerNs < 0
        || !(offlineFloor >= 0 && offlineFloor <= 1)
        || lockoutNs <= 0) {
      throw new IllegalArgumentException(
          "invalid scheduler settings: shortestTurnNs="
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
   * {@return the settings that correspond to a GPU's settings}
   *
   * @param settings the GPU's settings
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
   * {@return how long a tenant may be idle and still keep the time that it was owed} After a longer
   * idle time, the tenant had no work, and its unused time is lost.
   */
  long memoryNs() {
    return 5 * shortestTurnNs;
  }
}
