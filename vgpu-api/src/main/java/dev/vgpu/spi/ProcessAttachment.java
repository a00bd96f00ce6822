package dev.vgpu.spi;

/**
 * This process's part under one lease. A process may be under several; then each of its threads
 * works for the one that it is bound to. Safe for use by several threads.
 */
public interface ProcessAttachment extends AutoCloseable {
  /**
   * Binds the calling thread: its allocations, and the streams and graphs that it makes, belong to
   * this lease from now on, until it is bound to another or unbound. It costs a native call.
   *
   * @throws IllegalStateException if this process has left the lease
   */
  void bindThread();

  /** Unbinds the calling thread: it works for the process's first lease that is left. */
  void unbindThread();

  /**
   * Leaves the lease. What the process still has of it starts nothing any more, and can only be
   * freed. A second call does nothing; never throws.
   */
  @Override
  void close();
}
