package dev.vgpu.spi;

import dev.vgpu.VirtualGpuRequest;

/**
 * What the scheduler does to one virtual GPU. Its methods are called by one thread at a time, with
 * the GPU's scheduler held, and must neither block nor call {@link TurnDemand}.
 */
public interface TurnGate {
  /** Lets work start. Called only while shut. */
  void open();

  /**
   * Lets no further work start. Work that runs goes on.
   *
   * @return whether nothing runs: {@code true} ends the turn now; after {@code false} the backend
   *     calls {@link TurnDemand#drained()} when the running work has ended
   */
  boolean shut();

  /**
   * Asks running work to end soon, where it can. Called after {@link #shut()} said {@code false}.
   *
   * @return how many pieces of running work were asked to end
   */
  int preempt();

  /** {@return whether work runs inside, or waits to} */
  boolean hasWork();

  /**
   * {@return the GPU time until now, in nanoseconds, running work included; never decreases}
   *
   * @param nowNs the present, on the clock of {@link System#nanoTime()}
   */
  long gpuTimeNs(long nowNs);

  /**
   * Tells the gate whether other tenants wait for the GPU. Only while they do, must the gate report
   * {@link TurnDemand#drained()} each time that it becomes idle while open.
   *
   * @param contended whether they do
   */
  void contended(boolean contended);

  /**
   * Replaces what is granted.
   *
   * @param request what is granted from now on
   */
  void resized(VirtualGpuRequest request);

  /** Gives back all that {@link EnforcementBackend#attach} prepared. The last call. */
  void detach();
}
