package dev.vgpu.core.pool;

import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.PreemptionClass;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.turn.GpuSeat;
import java.util.LinkedHashSet;
import java.util.Set;

/**
 * One GPU and what is taken of it. Guarded by the {@link LeaseTable}'s lock, but for the finals.
 */
final class GpuSlot {
  private static final int ALL_PERCENT = 100;

  final PhysicalGpu gpu;
  final GpuSeat seat;
  final Set<Lease> leases = new LinkedHashSet<>();
  private long takenBytes;
  private int takenPercent;
  private int takenPercentOffline;

  GpuSlot(PhysicalGpu gpu, GpuSeat seat) {
    this.gpu = gpu;
    this.seat = seat;
  }

  MemorySize freeMemory() {
    return MemorySize.ofBytes(Math.max(0, gpu.usableMemory().bytes() - takenBytes));
  }

  /** The percent that may still be guaranteed to tenants of a class. */
  int freePercent(PreemptionClass preemptionClass) {
    boolean offline = preemptionClass == PreemptionClass.OFFLINE;
    return ALL_PERCENT - (offline ? takenPercentOffline : takenPercent);
  }

  boolean fits(VirtualGpuRequest request) {
    return request.computePercent().orElse(0) <= freePercent(request.preemptionClass())
        && request.memory().compareTo(freeMemory()) <= 0;
  }

  void take(VirtualGpuRequest request) {
    book(request, 1);
  }

  void giveBack(VirtualGpuRequest request) {
    book(request, -1);
  }

  private void book(VirtualGpuRequest request, int sign) {
    takenBytes += sign * request.memory().bytes();
    int percent = sign * request.computePercent().orElse(0);
    if (request.preemptionClass() == PreemptionClass.OFFLINE) {
      takenPercentOffline += percent;
    } else {
      takenPercent += percent;
    }
  }

  /** What is free for a request's class, in words. */
  String free(PreemptionClass preemptionClass) {
    String whose = preemptionClass == PreemptionClass.OFFLINE ? "offline" : "online+nearline";
    return "gpu="
        + gpu.id()
        + " freePercent("
        + whose
        + ")="
        + freePercent(preemptionClass)
        + " freeMemory="
        + freeMemory()
        + " usableMemory="
        + gpu.usableMemory();
  }
}
