package dev.vgpu.core.node;

/** A pool, which closes the leases acquired through it. Thread-safe. */
public interface LeaseOwner {
  /** {@return whether it is closed and takes no more leases} */
  boolean isClosed();

  /** Registers a lease, to be closed when this pool closes. */
  void add(Lease lease);

  /** Removes a lease whose last call has left. */
  void remove(Lease lease);
}
