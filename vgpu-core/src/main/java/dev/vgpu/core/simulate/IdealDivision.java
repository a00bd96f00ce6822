package dev.vgpu.core.simulate;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import java.util.List;

/**
 * The ideal division of a GPU: what policies and classes entitle each tenant with work to, if the
 * GPU could be divided into arbitrarily small parts.
 */
final class IdealDivision {
  private final List<VirtualGpuRequest> requests;
  private final double offlineFloor;

  /**
   * Creates one.
   *
   * @param requests the granted terms of each tenant
   * @param offlineFloor the minimum part for offline tenants, 0 to 1
   */
  IdealDivision(List<VirtualGpuRequest> requests, double offlineFloor) {
    this.requests = List.copyOf(requests);
    this.offlineFloor = offlineFloor;
  }

  /**
   * Divides the GPU.
   *
   * @param works which tenants have work
   * @param rates receives the part of each tenant, 0 to 1
   */
  void divide(boolean[] works, double[] rates) {
    double upper = divideLevel(works, rates, false, 1);
    double left = 1 - upper;
    boolean anyOffline = false;
    for (int i = 0; i < works.length; i++) {
      anyOffline |= works[i] && isOffline(i);
    }
    if (!anyOffline) {
      double ignored = divideLevel(works, rates, true, 0);
      return;
    }
    if (left < offlineFloor && upper > 0) {
      left = offlineFloor;
      for (int i = 0; i < works.length; i++) {
        rates[i] *= isOffline(i) ? 1 : (1 - left) / upper;
      }
    }
    double ignored = divideLevel(works, rates, true, left);
  }

  /** Divides a level's part of the GPU among its tenants, and returns the sum of what they get. */
  private double divideLevel(boolean[] works, double[] rates, boolean offline, double whole) {
    double guaranteed = 0;
    int takers = 0;
    for (int i = 0; i < works.length; i++) {
      if (works[i] && isOffline(i) == offline) {
        guaranteed += guaranteed(i);
        takers += takesSurplus(i) ? 1 : 0;
      }
    }
    double surplus = takers == 0 ? 0 : Math.max(0, 1 - guaranteed) / takers;
    double sum = 0;
    for (int i = 0; i < works.length; i++) {
      if (isOffline(i) == offline) {
        double part = guaranteed(i) + (takesSurplus(i) ? surplus : 0);
        rates[i] = works[i] ? part * whole : 0;
        sum += rates[i];
      }
    }
    return sum;
  }

  private boolean isOffline(int i) {
    return requests.get(i).preemptionClass() == PreemptionClass.OFFLINE;
  }

  private boolean takesSurplus(int i) {
    return requests.get(i).policy() != SharePolicy.FIXED_SHARE;
  }

  private double guaranteed(int i) {
    return requests.get(i).computePercent().orElse(0) / 100.0;
  }
}
