package dev.vgpu;

/** Receives the events of a pool. */
@FunctionalInterface
public interface GpuListener {
  /**
   * Invoked on a thread of the pool, one event at a time, in order. One that throws is logged and
   * goes on being told. A slow one delays no call and no other listener; when it falls {@code
   * 10,000} events behind, the newest are dropped and their number is logged.
   *
   * @param event the event; switch over it with a {@code default}, since there will be more kinds
   */
  void onEvent(GpuEvent event);
}
