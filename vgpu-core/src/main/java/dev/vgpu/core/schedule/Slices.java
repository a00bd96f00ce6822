package dev.vgpu.core.schedule;

/**
 * What part of the time that each tenant of a level says it used was its own, where several have
 * work on the device and it gives them equal slices. A kernel's measured time runs on while others
 * have theirs. Confined to the scheduler's owner.
 *
 * <p>Of those whose gates are open not all have work at each moment. How often each of them has is
 * seen by what it tells; that they have it independently of each other is taken for granted. If the
 * others are at work with the probabilities p, and K of them are, a tenant's part is the mean of
 * 1/(1 + K), which is the integral of the product of all (1 - p + p x) over x from 0 to 1.
 */
final class Slices {
  /** Gauss and Legendre's rule with four nodes: exact for up to seven others. */
  private static final double[] NODES = {
    0.069431844202974, 0.330009478207572, 0.669990521792428, 0.930568155797026
  };

  private static final double[] WEIGHTS = {
    0.173927422568727, 0.326072577431273, 0.326072577431273, 0.173927422568727
  };

  /** Who has work less often beside others is taken to pause, and to wait for its slices. */
  private static final double LEAST_BUSY_TOGETHER = 0.85;

  /** Until it has work so often in turns of its own. */
  private static final double LEAST_BUSY_ALONE = 0.995;

  /** Over how long it is seen how often a tenant has work. */
  private static final double MEMORY_NS = 200_000_000;

  private final ActiveGates gates;
  private final boolean ofOffline;
  private final double[] products = new double[NODES.length];

  Slices(ActiveGates gates, boolean ofOffline) {
    this.gates = gates;
    this.ofOffline = ofOffline;
  }

  /**
   * Time has passed. Of two levels offline gives way to the other one; but not what is on its way
   * to the GPU already.
   */
  void passed(double passedNs) {
    boolean offlineDrains = false;
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      offlineDrains |= tenant.draining && tenant.isOffline() && !isEarlier(tenant);
    }
    int counted = 0;
    for (int i = 0; i < gates.size(); i++) {
      counted += counts(gates.get(i), offlineDrains) ? 1 : 0;
    }
    for (int k = 0; counted > 1 && k < NODES.length; k++) {
      products[k] = WEIGHTS[k];
      for (int i = 0; i < gates.size(); i++) {
        Tenant tenant = gates.get(i);
        products[k] *= counts(tenant, offlineDrains) ? factor(tenant, NODES[k]) : 1;
      }
    }
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      if (tenant.isOffline() == ofOffline && counts(tenant, offlineDrains)) {
        tenant.countedNs += passedNs;
        tenant.ownNs += passedNs * (counted > 1 ? part(tenant) : 1);
      }
    }
  }

  /** Whether it is among those who have slices beside a tenant of this level. */
  private boolean counts(Tenant tenant, boolean offlineDrains) {
    if (isEarlier(tenant)) {
      return false; // what it has beside the next one is given back to both
    }
    if (tenant.isOffline() == ofOffline) {
      return tenant.draining || tenant.isRunnable();
    }
    return offlineDrains && (tenant.draining || (ofOffline && tenant.isRunnable()));
  }

  private boolean isEarlier(Tenant tenant) {
    return gates.early(tenant.isOffline()).isEarlier(tenant);
  }

  private static double factor(Tenant tenant, double x) {
    double busy = tenant.draining ? 1 : tenant.busyPart;
    return 1 - busy + busy * x;
  }

  private double part(Tenant tenant) {
    double sum = 0;
    for (int k = 0; k < NODES.length; k++) {
      sum += products[k] / factor(tenant, NODES[k]);
    }
    return sum;
  }

  /** {@return what part of the time that a tenant tells now was its own} */
  double told(Tenant tenant, double saidNs) {
    double part = 1;
    if (tenant.countedNs > 0) {
      part = Math.min(1, tenant.ownNs / tenant.countedNs);
      // Of all that it told lately: one kernel's time may be told with the next one's.
      double keep = Math.max(0, 1 - tenant.countedNs / MEMORY_NS);
      tenant.saidLatelyNs = keep * tenant.saidLatelyNs + saidNs;
      tenant.countedLatelyNs = keep * tenant.countedLatelyNs + tenant.countedNs;
      tenant.busyPart = Math.min(1, tenant.saidLatelyNs / tenant.countedLatelyNs);
      if (tenant.countedLatelyNs >= MEMORY_NS / 2) {
        tenant.pauses = tenant.busyPart < (tenant.pauses ? LEAST_BUSY_ALONE : LEAST_BUSY_TOGETHER);
      }
    }
    begin(tenant);
    return part;
  }

  /** What a tenant tells from now on is of the time from now on. */
  void begin(Tenant tenant) {
    tenant.ownNs = 0;
    tenant.countedNs = 0;
  }
}
