package dev.vgpu.core.schedule;

/**
 * A gate behind which there is always work that ends as soon as it is shut, and is not measured.
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
