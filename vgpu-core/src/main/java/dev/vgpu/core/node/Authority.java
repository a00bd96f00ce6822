package dev.vgpu.core.node;

import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.UsageRecord;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * The decision-maker for a node's GPUs, as this JVM sees it: this JVM itself, or the process that
 * holds the seat. Each method throws {@link SeatLostException} if that process is gone; another
 * process decides then. Thread-safe.
 */
public interface Authority {
  /** Grants a request at once, or throws an exception with the reason. */
  Lease acquire(LocalClaim claim);

  /** Waits until a request is granted; empty after the timeout. */
  Optional<Lease> tryAcquire(LocalClaim claim, long timeoutNs) throws InterruptedException;

  /** Replaces what a lease is granted, or throws and changes nothing. */
  void resize(Lease lease, VirtualGpuRequest request);

  /** Moves the partitions of idle leases so that a request fits; returns what was moved. */
  List<String> makeRoom(VirtualGpuRequest request);

  /** Suspends a lease of any process. Blocks for {@code timeoutNs} at most. */
  void suspend(String id, long timeoutNs);

  /** Resumes a suspended lease. Blocks for {@code timeoutNs} at most. */
  void resume(String id, long timeoutNs);

  /** Reports that a lease of this JVM is closed and its last call has left. */
  void ended(Lease lease);

  /** Fails all requests that wait on behalf of a pool that closes. */
  void failPending(Object owner);

  /** {@return all leases of the node} */
  List<GpuLease> leases();

  /** The usage of each virtual GPU since a moment. */
  List<UsageRecord> usageSince(Instant since);

  /** How each GPU is shared. */
  List<GpuState> states();

  /** What each backend can do for a request, and which is chosen. */
  List<BackendChoice> explain(VirtualGpuRequest request);

  /** The latest events. */
  List<GpuEvent> recentEvents();

  /** {@return the status of each provider and each backend} */
  List<BackendStatus> backends();

  /** {@return what is enforced for a lease} */
  Capabilities capabilities(Lease lease);

  /** {@return the usage of a lease} */
  GpuUsage usage(Lease lease);

  /**
   * What is needed to run a program under a lease. If {@code program} is present, it is checked.
   */
  ProgramTerms terms(Lease lease, Optional<Path> program);

  /** Reports that a program was started under a lease. */
  void started(Lease lease, ProcessIdentity program);

  /** Reports that this JVM was put under a lease, so that the backend measures its calls. */
  void attached(Lease lease);

  /** Reports that the lease's owner can be asked to free memory. */
  void reclaimable(Lease lease);

  /** Reports that this JVM now has a listener for events. */
  default void listen() {}

  /** Publishes an event to all listeners of the node. */
  void publish(Function<Instant, GpuEvent> event);
}
