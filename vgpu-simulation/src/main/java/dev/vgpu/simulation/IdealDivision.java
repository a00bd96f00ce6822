package dev.vgpu.simulation;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
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
    boolean anyOffline = false;
    for (int i = 0; i < works.length; i++) {
      anyOffline |= works[i] && isOffline(i);
    }
    double upper = divideLevel(works, rates, false, anyOffline ? 1 - offlineFloor : 1, 1);
    double left = 1 - upper;
    double ignored = divideLevel(works, rates, true, anyOffline ? left : 0, left);
  }

  /**
   * Divides a level's part of the GPU among its tenants, and returns the sum of what they get.
   *
   * @param whole the level's part
   * @param of what guarantees are parts of; if they exceed the whole, all are reduced alike
   */
  private double divideLevel(
      boolean[] works, double[] rates, boolean offline, double whole, double of) {
    double guaranteed = 0;
    int takers = 0;
    for (int i = 0; i < works.length; i++) {
      if (works[i] && isOffline(i) == offline) {
        guaranteed += of * guaranteed(i);
        takers += takesSurplus(i) ? 1 : 0;
      }
    }
    double surplus = takers == 0 ? 0 : Math.max(0, whole - guaranteed) / takers;
    double scale = guaranteed > whole ? of * whole / guaranteed : of;
    double sum = 0;
    for (int i = 0; i < works.length; i++) {
      if (isOffline(i) == offline) {
        rates[i] = works[i] ? scale * guaranteed(i) + (takesSurplus(i) ? surplus : 0) : 0;
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
