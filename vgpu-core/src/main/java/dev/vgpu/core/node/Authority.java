package dev.vgpu.core.node;

import dev.vgpu.BackendChoice;
import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuState;
import dev.vgpu.GpuUsage;
import dev.vgpu.UsageRecord;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.discovery.ProgramTerms;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.disk.SeatLostException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * Who decides about a node's GPUs, as this JVM sees it: itself, or the process that holds the seat.
 * Each method throws {@link SeatLostException} if that process is gone; another decides then. Safe
 * for use by several threads.
 */
public interface Authority {
  /** Grants a request now, or throws why not. */
  Lease acquire(LocalClaim claim);

  /** Waits until a request is granted; empty after the timeout. */
  Optional<Lease> tryAcquire(LocalClaim claim, long timeoutNs) throws InterruptedException;

  /** Replaces what a lease holds, or throws and changes nothing. */
  void resize(Lease lease, VirtualGpuRequest request);

  /** Moves what idle leases have set aside so that a request fits; what was moved. */
  List<String> makeRoom(VirtualGpuRequest request);

  /** Suspends a lease, whosever it is. Blocks, and may take that long. */
  void suspend(String id, long timeoutNs);

  /** Lets a suspended lease go on. Blocks, and may take that long. */
  void resume(String id, long timeoutNs);

  /** A lease of this JVM was closed and its last call has left. */
  void ended(Lease lease);

  /** Sends away all who wait on behalf of a pool that closes. */
  void failPending(Object owner);

  /** {@return all leases of the node} */
  List<GpuLease> leases();

  /** What each virtual GPU used from a moment on. */
  List<UsageRecord> usageSince(Instant since);

  /** How each GPU is shared. */
  List<GpuState> states();

  /** What it makes of each backend for a request. */
  List<BackendChoice> explain(VirtualGpuRequest request);

  /** What happened last. */
  List<GpuEvent> recentEvents();

  /** {@return what GPUs are found by and what enforces, and whether it can be used} */
  List<BackendStatus> backends();

  /** {@return what is enforced for a lease} */
  Capabilities capabilities(Lease lease);

  /** {@return what a lease has used} */
  GpuUsage usage(Lease lease);

  /** What puts a program under a lease; {@code program} is checked, if it is there. */
  ProgramTerms terms(Lease lease, Optional<Path> program);

  /** A program was started under a lease. */
  void started(Lease lease, ProcessIdentity program);

  /** This very process was put under a lease: what its calls start is measured there. */
  void attached(Lease lease);

  /** Its owner can be asked to free memory from now on. */
  void reclaimable(Lease lease);

  /** Events are listened to in this JVM from now on. */
  default void listen() {}

  /** Tells all who listen. */
  void publish(Function<Instant, GpuEvent> event);
}
