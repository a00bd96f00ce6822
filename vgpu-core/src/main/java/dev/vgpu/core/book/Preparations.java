package dev.vgpu.core.book;

import static java.util.Objects.requireNonNull;

import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.EnforcementBackend;
import java.nio.file.Path;
import java.util.concurrent.locks.Lock;
import org.jspecify.annotations.Nullable;

/**
 * Prepares virtual GPUs for programs. While a backend prepares one, the table's lock is not held.
 * Safe for use by several threads.
 */
final class Preparations {
  private final NodeContext node;
  private final Lock lock;
  private final BackendWork work;
  private final Enforcements enforcements;
  private final BackendChoices choices;
  private final LeaseEnds ends;
  private final @Nullable LeaseDirectory disk;

  /** Creates one; {@code lock} is the table's. */
  Preparations(
      NodeContext node,
      Lock lock,
      BackendWork work,
      Enforcements enforcements,
      BackendChoices choices,
      LeaseEnds ends,
      @Nullable LeaseDirectory disk) {
    this.node = node;
    this.lock = lock;
    this.work = work;
    this.enforcements = enforcements;
    this.choices = choices;
    this.ends = ends;
    this.disk = disk;
  }

  /**
   * Prepares a virtual GPU, once. Waits while another thread prepares or moves it. If it ends
   * meanwhile, it is kept until it is prepared.
   */
  EnforcedLease enforce(Booking booking) {
    lock.lock();
    try {
      work.awaitEnd(booking);
      if (booking.enforced() == null) {
        work.awaitTurn(booking); // another may prepare it meanwhile
      }
      ends.checkDecides();
      EnforcedLease before = booking.enforced();
      if (before != null) {
        return before;
      }
      if (booking.released) {
        throw new IllegalStateException("the virtual GPU is closed: id=" + booking.id);
      }
      work.begin(booking);
    } finally {
      lock.unlock();
    }
    try {
      return prepare(booking);
    } finally {
      ends.workDone(booking);
      if (booking.ended) {
        ends.releaseIfUnused(booking);
      }
    }
  }

  /** Prepares a virtual GPU. Work on it has begun. If this fails, it is as it was before. */
  EnforcedLease prepare(Booking booking) {
    EnforcementBackend backend;
    lock.lock();
    try {
      enforcements.checkUsable();
      backend = choices.forPrograms(booking);
    } finally {
      lock.unlock();
    }
    Path directory = requireNonNull(disk, "where backends work, leases are on disk").of(booking.id);
    EnforcedLease.Listener listener = new LeaseWatch(node, ends, booking);
    EnforcedLease lease = enforcements.prepare(backend, booking, directory, listener);
    lock.lock();
    try {
      ends.checkDecides(); // the next holder of the seat takes over what was prepared
      booking.backend = backend.name();
      booking.enforced(lease);
      booking.goOnInSpace();
      booking.books.forEach(book -> book.enforced(booking));
      booking.rewrite(disk);
      return lease;
    } finally {
      lock.unlock();
    }
  }
}
