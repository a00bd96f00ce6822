package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.ReportPage;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.GpuWork;
import java.nio.file.attribute.UserPrincipal;
import java.util.List;
import java.util.Optional;
import java.util.function.Supplier;

/** What can be read of a lease's processes. Guarded by the lock, which each method takes. */
abstract class LeaseReadings implements EnforcedLease {
  final String id;
  final SlotTable slots;
  final Object lock = new Object();

  /** The user whose processes may attach, besides the seat's; empty: whoever has the secret. */
  final Optional<UserPrincipal> member;

  private LeaseCounts counts = LeaseCounts.NONE;

  LeaseReadings(String id, SlotTable slots, Optional<UserPrincipal> member) {
    this.id = id;
    this.slots = slots;
    this.member = member;
  }

  /** Called if the pages can no longer be read. */
  abstract void giveUp(Throwable cause);

  final <T> T guarded(Supplier<T> reading, T otherwise) {
    try {
      return reading.get();
    } catch (ReportPage.LostException | InternalError e) {
      giveUp(e);
      return otherwise;
    }
  }

  /** Reads from what the processes report now. */
  final <T> T fresh(Supplier<T> reading, T otherwise) {
    return guarded(
        () -> {
          slots.refresh();
          return reading.get();
        },
        otherwise);
  }

  final LeaseCounts counts() {
    synchronized (lock) {
      LeaseCounts last = counts;
      counts = fresh(() -> last.next(slots), last);
      return counts;
    }
  }

  @Override
  public MemorySize memoryUsed() {
    synchronized (lock) {
      return MemorySize.ofBytes(guarded(slots.memory()::usedBytes, 0L));
    }
  }

  @Override
  public MemorySize memoryUsed(int gpu, int gpus) {
    synchronized (lock) {
      return MemorySize.ofBytes(guarded(() -> slots.memory().usedBytes(gpu, gpus), 0L));
    }
  }

  @Override
  public List<Long> processes() {
    synchronized (lock) {
      return slots.pids();
    }
  }

  @Override
  public boolean hasProcessesBesides(long pid) {
    synchronized (lock) {
      return slots.visible(slot -> slot.pid == pid).size() < slots.count();
    }
  }

  @Override
  public List<Long> visibleProcesses() {
    List<SeatSlot> visible;
    synchronized (lock) {
      visible = slots.visible(slot -> true);
    }
    return slots.mappings().genuine(visible);
  }

  @Override
  public List<Long> memoryHolders() {
    List<SeatSlot> holders;
    synchronized (lock) {
      holders = fresh(() -> slots.visible(SeatSlot::holdsMemory), List.of());
    }
    return slots.mappings().genuine(holders);
  }

  @Override
  public int waiting() {
    synchronized (lock) {
      return fresh(slots::waiting, 0);
    }
  }

  @Override
  public long deniedAllocations() {
    return counts().denied();
  }

  @Override
  public long launches() {
    return counts().launches();
  }

  @Override
  public GpuWork work() {
    synchronized (lock) {
      return guarded(
          () ->
              new GpuWork(
                  slots.launches(),
                  Math.max(0, slots.sum(Slot.LAUNCH_BOUND_NS)),
                  Math.max(0, slots.sum(Slot.LEVEL2_STOPPED_NS)),
                  Math.max(0, slots.sum(Slot.LEVEL2_STOPS)),
                  slots.most(Slot.LEVEL2_STOPPED_AT_NS)),
          GpuWork.UNKNOWN);
    }
  }

  @Override
  public long copyTimeNs() {
    return counts().copyNs();
  }

  @Override
  public long passedThrough() {
    return counts().passedThrough();
  }

  @Override
  public Optional<Capabilities.Preemption> preemption() {
    synchronized (lock) {
      if (slots.count() == 0) {
        return Optional.empty();
      }
      return Optional.of(
          preemptionReason().isEmpty()
              ? Capabilities.Preemption.INSIDE_KERNEL
              : Capabilities.Preemption.BETWEEN_KERNELS);
    }
  }

  @Override
  public Optional<String> preemptionReason() {
    synchronized (lock) {
      return fresh(slots::notStoppedBecause, Optional.empty());
    }
  }
}
