package dev.vgpu.core.pool;

import dev.vgpu.BackendChoice;
import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuState;
import dev.vgpu.GpuUsage;
import dev.vgpu.UsageRecord;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.seat.ProcessIdentity;
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
interface Authority {
  Lease acquire(LocalClaim claim);

  Optional<Lease> tryAcquire(LocalClaim claim, long timeoutNs) throws InterruptedException;

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
  void failPending(NodePool pool);

  List<GpuLease> leases();

  /** What each virtual GPU used from a moment on. */
  List<UsageRecord> usageSince(Instant since);

  /** How each GPU is shared. */
  List<GpuState> states();

  /** What it makes of each backend for a request. */
  List<BackendChoice> explain(VirtualGpuRequest request);

  /** What happened last. */
  List<GpuEvent> recentEvents();

  List<BackendStatus> backends();

  Capabilities capabilities(Lease lease);

  GpuUsage usage(Lease lease);

  /** What puts a program under a lease; {@code program} is checked, if it is there. */
  ProgramTerms terms(Lease lease, Optional<Path> program);

  /** A program was started under a lease. */
  void started(Lease lease, ProcessIdentity program);

  /** This very process was put under a lease: what its calls start is measured there. */
  void attached(Lease lease);

  /** Its owner can be asked to free memory from now on. */
  void reclaimable(Lease lease);

  /** Tells all who listen. */
  void publish(Function<Instant, GpuEvent> event);

  /** The process that decides is gone. */
  final class SeatLostException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    SeatLostException(String message) {
      super(message);
    }
  }
}
