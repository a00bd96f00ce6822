package dev.vgpu.core.book;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.events.Listeners;
import dev.vgpu.core.events.Preemptions;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;

/** What the book and its helpers need from their node. */
public interface NodeContext {
  /** {@return the current settings} */
  PoolSettings settings();

  /** {@return the clock of this node} */
  NanoClock clock();

  /** {@return this process} */
  ProcessIdentity self();

  /** {@return the listeners for events} */
  Listeners listeners();

  /** {@return the counter of preemptions, which are published in batches} */
  Preemptions preemptions();

  /** {@return threads for work that must not run on a caller's thread} */
  ExecutorService workers();

  /**
   * {@return a new lease id}
   *
   * @param name the tenant's name, which begins the id
   * @param disk where leases are kept, which knows the ids in use; null if they are not kept
   */
  String newLeaseId(String name, @Nullable LeaseDirectory disk);
}
