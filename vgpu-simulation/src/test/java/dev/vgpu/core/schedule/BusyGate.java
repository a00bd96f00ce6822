package dev.vgpu.core.schedule;

/**
 * A gate with unmeasured work that never runs out while it is open, and ends at once when it is
 * shut.
 */
class BusyGate implements TurnGate {
  boolean open;

  @Override
  public void open() {
    open = true;
  }

  @Override
  public boolean shut() {
    open = false;
    return true;
  }

  @Override
  public int preempt() {
    return 0;
  }

  @Override
  public boolean hasWork() {
    return true;
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    return 0;
  }

  @Override
  public void contended(boolean contended) {}
}
