package dev.vgpu.core.book;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.disk.LeaseDirectory;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.events.Listeners;
import dev.vgpu.core.events.Preemptions;
import java.util.concurrent.ExecutorService;
import org.jspecify.annotations.Nullable;

/** What the book and its helpers need of the node that they belong to. */
public interface NodeContext {
  /** {@return the settings that hold now} */
  PoolSettings settings();

  /** {@return the clock of this node} */
  NanoClock clock();

  /** {@return this process} */
  ProcessIdentity self();

  /** {@return the listeners that are told about events} */
  Listeners listeners();

  /** {@return the count of preemptions, which are told in batches} */
  Preemptions preemptions();

  /** {@return threads for work that must not run on a caller's thread} */
  ExecutorService workers();

  /**
   * {@return a new id for a lease}
   *
   * @param name the tenant's name, with which the id begins
   * @param disk where leases are kept, which knows the ids in use; null: nowhere
   */
  String newLeaseId(String name, @Nullable LeaseDirectory disk);
}
