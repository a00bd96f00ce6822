package dev.vgpu.watch;

/** Receives the events of a pool. */
@FunctionalInterface
public interface GpuListener {
  /**
   * Called on a thread of the pool, one event at a time, in order. If it throws, the exception is
   * logged and later events are still delivered. A slow listener delays no call and no other
   * listener. If it falls {@code 10,000} events behind, the newest events are dropped and their
   * number is logged.
   *
   * @param event the event; a switch over it needs a {@code default}, because kinds may be added
   */
  void onEvent(GpuEvent event);
}
