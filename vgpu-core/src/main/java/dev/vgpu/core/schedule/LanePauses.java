package dev.vgpu.core.schedule;

/**
 * The time that urgent tenants leave to offline ones. Their short pauses are not left: the express
 * lane holds offline work until a pause has lasted for the lane's linger. An offline tenant that
 * uses nothing of them was not silent. Confined to the scheduler's owner.
 */
final class LanePauses {
  /** The lane's linger is 150 us (vgpu-cuda, express.c); the rest is for reports on their way. */
  private static final double SHORT_NS = 250_000;

  private double pauseNs;

  /**
   * How much of the time that has passed was left.
   *
   * @param urgentNs what urgent tenants used of it, by their reports
   */
  double leftNs(double passedNs, double urgentNs, ActiveGates gates) {
    if (urgentNs > 0 || isUrgentWork(gates)) {
      pauseNs = 0;
      return 0;
    }
    double beforeNs = Math.max(0, pauseNs - SHORT_NS);
    pauseNs += passedNs;
    return Math.max(0, pauseNs - SHORT_NS) - beforeNs;
  }

  /** Whether an urgent tenant has the GPU, or what it launched has not ended. */
  private static boolean isUrgentWork(ActiveGates gates) {
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      if (!tenant.isOffline() && (!tenant.open || tenant.gate.hasWork())) {
        return true;
      }
    }
    return false;
  }
}
