package dev.vgpu.core.schedule;

import dev.vgpu.request.PreemptionClass;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The runnable tenants of a level that are alike: the same class, the same guarantee, and all or
 * none of them taking surplus. Their lags all change by the same amount as time passes. Their order
 * changes only when one of them is charged, so a heap keeps it. Confined to the scheduler's owner.
 */
final class LagGroup {
  final PreemptionClass preemptionClass;
  final boolean takesSurplus;
  final double guaranteed;

  /** Its position in its level's list of groups that are not empty; -1 if it is empty. */
  int index = -1;

  private @Nullable Tenant[] heap = new @Nullable Tenant[4];
  private int size;

  LagGroup(PreemptionClass preemptionClass, boolean takesSurplus, double guaranteed) {
    this.preemptionClass = preemptionClass;
    this.takesSurplus = takesSurplus;
    this.guaranteed = guaranteed;
  }

  boolean isEmpty() {
    return size == 0;
  }

  /** The tenant with the largest lag; among equals, the one whose latest turn was earliest. */
  Tenant first() {
    return at(0);
  }

  /** The same among those whose gate is shut and whose work has ended, apart from one. */
  @Nullable Tenant firstWaiting(@Nullable Tenant except) {
    Tenant first = null;
    for (int i = 0; i < size; i++) {
      Tenant tenant = at(i);
      if (tenant.isActive() || tenant == except) {
        continue;
      }
      if (i == 0) {
        return tenant;
      }
      first = first == null || goesBefore(tenant, first) ? tenant : first;
    }
    return first;
  }

  void add(Tenant tenant) {
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, 2 * size);
    }
    put(size, tenant);
    size++;
    up(tenant);
  }

  void remove(Tenant tenant) {
    int i = tenant.heapIndex;
    size--;
    Tenant last = at(size);
    heap[size] = null;
    tenant.heapIndex = -1;
    if (last != tenant) {
      put(i, last);
      moved(last);
    }
  }

  /** Restores the order after a tenant's key or latest turn has changed. */
  void moved(Tenant tenant) {
    up(tenant);
    down(tenant);
  }

  private void up(Tenant tenant) {
    int i = tenant.heapIndex;
    while (i > 0) {
      Tenant parent = at((i - 1) / 2);
      if (!goesBefore(tenant, parent)) {
        break;
      }
      put(i, parent);
      i = (i - 1) / 2;
    }
    put(i, tenant);
  }

  private void down(Tenant tenant) {
    int i = tenant.heapIndex;
    for (int child = 2 * i + 1; child < size; child = 2 * i + 1) {
      if (child + 1 < size && goesBefore(at(child + 1), at(child))) {
        child++;
      }
      Tenant least = at(child);
      if (!goesBefore(least, tenant)) {
        break;
      }
      put(i, least);
      i = child;
    }
    put(i, tenant);
  }

  private void put(int i, Tenant tenant) {
    heap[i] = tenant;
    tenant.heapIndex = i;
  }

  private Tenant at(int i) {
    Tenant tenant = heap[i];
    if (tenant == null) {
      throw new IllegalStateException("nobody there: index=" + i + " size=" + size);
    }
    return tenant;
  }

  private static boolean goesBefore(Tenant tenant, Tenant other) {
    return tenant.key > other.key || (tenant.key == other.key && tenant.lastTurn < other.lastTurn);
  }
}
