package dev.vgpu.spi;

/**
 * What a backend tells the scheduler about one virtual GPU. Safe for use by several threads; may
 * call back into the gate before it returns.
 */
public interface TurnDemand {
  /** The tenant has work that waits while its gate is shut. One call per transition is enough. */
  void wanted();

  /** The tenant has become idle: nothing runs inside. */
  void drained();
}
