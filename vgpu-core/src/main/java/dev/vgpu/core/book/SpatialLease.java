package dev.vgpu.core.book;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.ForwardingLease;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/**
 * A lease whose programs have a spatial part of the GPU and take no turns. It is open except while
 * it is suspended. Its gate's methods are called with the GPU's seat held.
 */
final class SpatialLease extends ForwardingLease {
  private static final int ALL_PERMILLE = 1_000;

  private final BooleanSupplier suspended;

  SpatialLease(EnforcedLease beneath, BooleanSupplier suspended) {
    super(beneath);
    this.suspended = suspended;
  }

  /** Lets its programs work, unless they are suspended. */
  void goOn() {
    if (!suspended.getAsBoolean()) {
      beneath().yielding(false);
      beneath().contended(false);
      beneath().open();
    }
  }

  @Override
  public void open() {
    // A turn of its calls begins, which does not concern its programs.
  }

  @Override
  public boolean shut() {
    return !suspended.getAsBoolean() || beneath().shut();
  }

  @Override
  public int preempt() {
    return 0;
  }

  @Override
  public boolean hasWork() {
    return false;
  }

  @Override
  public Optional<Capabilities.Preemption> preemption() {
    return beneath().preemption().map(level -> Capabilities.Preemption.NONE);
  }

  @Override
  public Optional<String> preemptionReason() {
    return beneath().preemption().map(level -> "not needed: it has a part of the GPU to itself");
  }

  @Override
  public void contended(boolean contended) {
    // Only turns are contended, and its programs take none.
  }

  @Override
  public long leastTurnNs() {
    return 0;
  }

  @Override
  public boolean yieldsByItself() {
    return false;
  }

  @Override
  public void yielding(boolean obey) {
    // Its class matters to turns, not to spatial parts.
  }

  @Override
  public boolean mayOverlap() {
    return false;
  }

  @Override
  public long busyUntilNs() {
    return -1;
  }

  @Override
  public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
    return beneath().tryResize(request, ALL_PERMILLE);
  }
}
