package dev.vgpu.simulation;

/** Observes a virtual node. Called in the order of time. */
public interface NodeObserver {
  /** Ignores everything. */
  NodeObserver NONE = new NodeObserver() {};

  /**
   * The GPU worked for a tenant.
   *
   * @param gate the tenant's gate
   * @param fromNs the start
   * @param toNs the end, which is now
   */
  default void ran(VirtualGate gate, long fromNs, long toNs) {}

  /**
   * Work arrived at a tenant.
   *
   * @param gate the tenant's gate
   * @param workNs how long the GPU will work for it
   * @param nowNs the present
   */
  default void arrived(VirtualGate gate, long workNs, long nowNs) {}

  /**
   * A tenant was preempted.
   *
   * @param victim the tenant's gate
   * @param nowNs the present
   */
  default void preempted(VirtualGate victim, long nowNs) {}
}
