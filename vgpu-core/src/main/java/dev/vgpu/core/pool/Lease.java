package dev.vgpu.core.pool;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuLease;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.turn.GateOwner;
import dev.vgpu.core.turn.GatedCalls;
import dev.vgpu.core.turn.InProcessGate;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What stands behind a virtual GPU: its part of the GPU, its gate, its submitted calls. Must not
 * refer to the handle that the caller holds, or a leak of that could not be found.
 */
final class Lease implements GateOwner {
  private static final Logger log = LoggerFactory.getLogger(Lease.class);
  private static final long PID = ProcessHandle.current().pid();

  final String id;
  final GpuSlot slot;
  final InProcessGate gate;
  final GatedCalls calls;
  final SubmittedCalls submitted;
  final @Nullable Throwable creationSite;

  private final Node node;
  private final NodePool pool;
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile VirtualGpuRequest request;

  Lease(String id, Node node, GpuSlot slot, Asked asked) {
    this.id = id;
    this.node = node;
    this.slot = slot;
    this.pool = asked.pool();
    this.request = asked.request();
    this.creationSite = asked.creationSite();
    this.gate = new InProcessGate(id, slot.seat, request, this);
    this.calls = new GatedCalls(gate);
    this.submitted = new SubmittedCalls(id, node.workers());
  }

  VirtualGpuRequest request() {
    return request;
  }

  /** Called with the table's lock held, after the books were changed. */
  void request(VirtualGpuRequest replaced) {
    request = replaced;
  }

  boolean isClosed() {
    return closed.get();
  }

  GpuLease snapshot() {
    return new LeaseSnapshot(id, slot.gpu.id(), request, PID, gate.usage());
  }

  void resize(VirtualGpuRequest asked) {
    node.table().resize(this, asked);
  }

  /** Gives all back, at once or when the last call has left. */
  void close() {
    if (closed.compareAndSet(false, true)) {
      submitted.close();
      gate.close();
    }
  }

  /** Closes what its owner forgot. */
  void leaked() {
    if (isClosed()) {
      return;
    }
    if (creationSite == null) {
      log.warn(
          "a virtual GPU was not closed: id={}; open the pool with LeakTracking.CREATION_SITE to see"
              + " where it was acquired",
          id);
    } else {
      log.warn("a virtual GPU was not closed: id={}; acquired here:", id, creationSite);
    }
    node.listeners().publish(at -> new GpuEvent.Leaked(at, id));
    close();
  }

  @Override
  public void drained() {
    pool.remove(this);
    node.released(this);
    node.listeners().publish(at -> new GpuEvent.Closed(at, id, gate.usage()));
  }

  @Override
  public void cancelFailed(String reason, @Nullable Throwable cause) {
    log.warn("calls of {} are not cancelled any more: {}", id, reason, cause);
    node.listeners().publish(at -> new GpuEvent.CancelFailed(at, id, reason));
  }

  @Override
  public void runCancel(Runnable cancel) {
    node.workers().execute(cancel);
  }

  @Override
  public VgpuException refusal(String message) {
    return new GpuCapacityException(message, List.of(snapshot()));
  }
}
