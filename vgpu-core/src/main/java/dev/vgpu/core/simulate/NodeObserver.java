package dev.vgpu.core.simulate;

/** Sees what happens on a virtual node. Called in the order of time. */
public interface NodeObserver {
  /** Sees nothing. */
  NodeObserver NONE = new NodeObserver() {};

  /**
   * The GPU worked for a tenant.
   *
   * @param gate the tenant's
   * @param fromNs since when
   * @param toNs until when: now
   */
  default void ran(VirtualGate gate, long fromNs, long toNs) {}

  /**
   * Work came to a tenant.
   *
   * @param gate the tenant's
   * @param workNs how long the GPU will work for it
   * @param nowNs the present
   */
  default void arrived(VirtualGate gate, long workNs, long nowNs) {}

  /**
   * A tenant was preempted.
   *
   * @param victim its gate
   * @param nowNs the present
   */
  default void preempted(VirtualGate victim, long nowNs) {}
}
