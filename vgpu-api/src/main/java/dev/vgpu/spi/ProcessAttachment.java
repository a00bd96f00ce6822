package dev.vgpu.spi;

/**
 * The attachment of this process to one lease. A process may be attached to several leases; each of
 * its threads then works for the lease that it is bound to. Safe for use by several threads.
 */
public interface ProcessAttachment extends AutoCloseable {
  /**
   * Binds the calling thread to this lease. Its later allocations, streams and graphs belong to
   * this lease, until the thread is bound to another or unbound. Costs one native call.
   *
   * @throws IllegalStateException if this process has left the lease
   */
  void bindThread();

  /**
   * Unbinds the calling thread: it then works for the first lease that the process is still
   * attached to.
   */
  void unbindThread();

  /**
   * Leaves the lease. What the process still holds of it cannot start work any more, and can only
   * be freed. A second call does nothing; never throws.
   */
  @Override
  void close();
}
