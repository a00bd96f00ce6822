package dev.vgpu.core.schedule;

/**
 * Decides whether a tenant that is idle in its turn, and would get the next turn anyway, keeps it
 * for a moment. A tenant that has repeatedly come back in time is trusted to the end of its turn,
 * which saves the timer. After a tenant has not come back, its next idle moments are not waited
 * for. Confined to the scheduler's owner.
 */
final class Linger {
  private static final long NEVER = Long.MAX_VALUE;

  /** After this many successful lingers in a row, a tenant is trusted to come back. */
  private static final int WINS_TRUSTED = 8;

  /** After n lingers in vain, the next 2^n are skipped; n is at most this. */
  private static final int MOST_MISSES = 6;

  private final long lingerNs;

  Linger(long lingerNs) {
    this.lingerNs = lingerNs;
  }

  /** Whether the tenant keeps its turn, until {@link Tenant#lingerUntilNs}. */
  boolean lingers(Tenant tenant, long nowNs) {
    if (lingerNs == 0) {
      return false;
    }
    boolean cameBack = tenant.lingerUntilNs != NEVER && tenant.bookedNs > tenant.lingerMarkNs;
    if (tenant.lingerUntilNs == NEVER || cameBack) {
      if (tenant.lingersToSkip > 0) {
        tenant.lingersToSkip--;
        return false;
      }
      tenant.lingerWins = cameBack ? tenant.lingerWins + 1 : tenant.lingerWins;
      tenant.lingerMisses = cameBack ? 0 : tenant.lingerMisses;
      boolean trusted = tenant.lingerWins >= WINS_TRUSTED;
      tenant.lingerMarkNs = tenant.bookedNs;
      long untilNs = nowNs + lingerNs;
      tenant.lingerUntilNs = trusted ? Math.max(untilNs, tenant.deadlineNs) : untilNs;
      return true;
    }
    if (nowNs < tenant.lingerUntilNs) {
      return true;
    }
    tenant.lingerWins = 0;
    tenant.lingerMisses = Math.min(tenant.lingerMisses + 1, MOST_MISSES);
    tenant.lingersToSkip = 1 << tenant.lingerMisses;
    tenant.lingerUntilNs = NEVER;
    return false;
  }
}
