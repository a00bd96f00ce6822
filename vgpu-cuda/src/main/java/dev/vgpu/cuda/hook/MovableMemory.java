package dev.vgpu.cuda.hook;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.MemoryMover;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.locks.LockSupport;

/**
 * Moves the memory that the processes of a lease have allocated. Orders go through the grant page,
 * and the hook carries them out in each process. Guarded by the lease's lock.
 */
final class MovableMemory implements MemoryMover {
  private static final long LOOK_NS = 500_000;
  private static final int OUT_OF_MEMORY = 2;

  private final HookLease lease;
  private final GrantPage grant;
  private final SlotTable slots;
  private final HookEnforcement owner;

  private MovableMemory(HookLease lease, GrantPage grant, SlotTable slots, HookEnforcement owner) {
    this.lease = lease;
    this.grant = grant;
    this.slots = slots;
    this.owner = owner;
  }

  /** {@return the mover of a lease; empty if its memory is not movable} */
  static Optional<MemoryMover> of(
      HookLease lease, GrantPage grant, SlotTable slots, HookEnforcement owner) {
    return grant.isMovable()
        ? Optional.of(new MovableMemory(lease, grant, slots, owner))
        : Optional.empty();
  }

  @Override
  public void moveOut(MemorySize atLeast, Duration timeout) {
    int order;
    synchronized (lease.lock) {
      order = grant.moveOut(atLeast.bytes());
    }
    await(order, timeout, "moved to the host's memory");
  }

  @Override
  public void moveBack(Duration timeout) {
    int order;
    synchronized (lease.lock) {
      order = grant.moveBack();
    }
    await(order, timeout, "moved back");
  }

  @Override
  public MemorySize moved() {
    synchronized (lease.lock) {
      long held = lease.memoryUsed().bytes();
      long moved = lease.fresh(() -> slots.sum(Slot.MOVED_BYTES), 0L);
      return MemorySize.ofBytes(Math.max(0, Math.min(moved, held)));
    }
  }

  private void await(int order, Duration timeout, String what) {
    long untilNs = owner.clock().nanoTime() + timeout.toNanos();
    while (true) {
      Optional<SeatSlot> late;
      synchronized (lease.lock) {
        grant.wake(owner.wake());
        late = lease.fresh(() -> slots.notYet(Slot.MOVE_DONE, order), Optional.empty());
        if (late.isEmpty()) {
          check(what);
          return;
        }
      }
      if (owner.clock().nanoTime() - untilNs >= 0) {
        throw new GpuSuspendException(
            "its memory was not "
                + what
                + " within "
                + timeout.toMillis()
                + " ms (is it stopped?): lease="
                + lease.id
                + " pid="
                + late.get().pid);
      }
      LockSupport.parkNanos(this, LOOK_NS);
    }
  }

  private void check(String what) {
    Optional<SeatSlot> failed =
        lease.fresh(() -> slots.notYet(Slot.MOVE_ERROR, 0), Optional.empty());
    if (failed.isPresent()) {
      int code = slots.intAt(failed.get(), Slot.MOVE_ERROR);
      throw new GpuSuspendException(
          "its memory could not all be "
              + what
              + ": "
              + (code == OUT_OF_MEMORY ? "there is no room for its memory" : "CUDA error " + code)
              + ": lease="
              + lease.id
              + " pid="
              + failed.get().pid);
    }
  }
}
