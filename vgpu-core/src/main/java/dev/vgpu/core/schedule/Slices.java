package dev.vgpu.core.schedule;

/**
 * Estimates which part of a tenant's reported time was its own, if several tenants of a level have
 * work on the device and get equal slices. A kernel's measured time also runs during the slices of
 * others. Confined to the scheduler's owner.
 *
 * <p>Not all tenants with open gates have work at each moment. How often each has work follows from
 * its reports, and the tenants are assumed to be independent. If the others have work with the
 * probabilities p, and K of them do, a tenant's part is the mean of 1/(1 + K). That is the integral
 * of the product of all (1 - p + p x) over x from 0 to 1.
 */
final class Slices {
  /** The Gauss-Legendre rule with four nodes: exact for up to seven others. */
  private static final double[] NODES = {
    0.069431844202974, 0.330009478207572, 0.669990521792428, 0.930568155797026
  };

  private static final double[] WEIGHTS = {
    0.173927422568727, 0.326072577431273, 0.326072577431273, 0.173927422568727
  };

  private final ActiveGates gates;
  private final boolean ofOffline;
  private final double[] products = new double[NODES.length];

  Slices(ActiveGates gates, boolean ofOffline) {
    this.gates = gates;
    this.ofOffline = ofOffline;
  }

  /** Records that time has passed. */
  void passed(double passedNs) {
    int counted = 0;
    for (int i = 0; i < gates.size(); i++) {
      counted += counts(gates.get(i)) ? 1 : 0;
    }
    for (int k = 0; counted > 1 && k < NODES.length; k++) {
      products[k] = WEIGHTS[k];
      for (int i = 0; i < gates.size(); i++) {
        Tenant tenant = gates.get(i);
        products[k] *= counts(tenant) ? factor(tenant, NODES[k]) : 1;
      }
    }
    for (int i = 0; i < gates.size(); i++) {
      Tenant tenant = gates.get(i);
      if (counts(tenant)) {
        tenant.countedNs += passedNs;
        tenant.ownNs += passedNs * (counted > 1 ? part(tenant) : 1);
      }
    }
  }

  /** Whether a tenant of this level has slices beside others of it. */
  private boolean counts(Tenant tenant) {
    if (isEarlier(tenant)) {
      return false; // what it had beside the next tenant is given back to both
    }
    return tenant.isOffline() == ofOffline && (tenant.draining || tenant.isRunnable());
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

  /** {@return the part of the time that a tenant reports now that was its own} */
  double told(Tenant tenant, double saidNs) {
    double part = 1;
    if (tenant.countedNs > 0) {
      part = Math.min(1, tenant.ownNs / tenant.countedNs);
      // Uses all its recent reports: one kernel's time may be reported with the next one's.
      double keep = Math.max(0, 1 - tenant.countedNs / Tenant.WORK_MEMORY_NS);
      tenant.saidLatelyNs = keep * tenant.saidLatelyNs + saidNs;
      tenant.countedLatelyNs = keep * tenant.countedLatelyNs + tenant.countedNs;
      tenant.boundLatelyNs = keep * tenant.boundLatelyNs + newBoundNs(tenant, saidNs);
      tenant.busyPart = Math.min(1, tenant.saidLatelyNs / tenant.countedLatelyNs);
    }
    begin(tenant);
    return part;
  }

  /** How much of what a tenant reports now was launch-bound. Its total falls if a process ends. */
  private static double newBoundNs(Tenant tenant, double saidNs) {
    long nowNs = tenant.work.launchBoundNs();
    long newNs = Math.min((long) saidNs, Math.max(0, nowNs - tenant.readBoundNs));
    tenant.readBoundNs = Math.min(nowNs, tenant.readBoundNs + newNs);
    return newNs;
  }

  /** Restarts the counts: the tenant's next report covers the time from now on. */
  void begin(Tenant tenant) {
    tenant.ownNs = 0;
    tenant.countedNs = 0;
  }
}
