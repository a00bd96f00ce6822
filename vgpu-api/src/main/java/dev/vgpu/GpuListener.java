package dev.vgpu;

/** Is told what happens in a pool. */
@FunctionalInterface
public interface GpuListener {
  /**
   * Invoked on a thread of the pool, one event at a time, in order. One that throws is logged and
   * goes on being told. A slow one delays nobody, no other listener either; when it falls {@code
   * 10,000} events behind, the newest are dropped and their number is logged.
   *
   * @param event what happened; switch over it with a {@code default}, for there will be more kinds
   */
  void onEvent(GpuEvent event);
}
