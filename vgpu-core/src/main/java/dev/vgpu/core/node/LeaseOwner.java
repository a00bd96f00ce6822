package dev.vgpu.core.node;

/** A pool: it closes the leases that were acquired through it. Safe for use by several threads. */
public interface LeaseOwner {
  /** {@return whether it is closed, so that it wants no lease any more} */
  boolean isClosed();

  /** Closes this lease at its own end. */
  void add(Lease lease);

  /** The last call of this lease has left. */
  void remove(Lease lease);
}
