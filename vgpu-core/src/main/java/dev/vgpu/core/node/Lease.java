package dev.vgpu.core.node;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.ReclaimHandler;
import dev.vgpu.VgpuException;
import dev.vgpu.core.book.BookedCalls;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.turn.GateOwner;
import dev.vgpu.core.turn.GatedCalls;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.core.turn.InProcessGate;
import dev.vgpu.core.turn.RemoteTurns;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.core.wire.LeaseSnapshot;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The state behind a virtual GPU in the JVM that acquired it: its gate and its submitted calls. It
 * must not refer to the handle that the caller holds; otherwise a leak of that handle would go
 * unnoticed.
 */
public final class Lease implements GateOwner, BookedCalls {
  private static final Logger log = LoggerFactory.getLogger(Lease.class);

  /** The virtual GPU's name, unique on the node. */
  public final String id;

  /** The first of its GPUs, whose seat guards the gate. */
  final NodeGpu on;

  private final List<NodeGpu> gpus;

  /** The gate at which its calls wait for turns. */
  public final InProcessGate gate;

  /** Its calls on callers' threads. */
  public final GatedCalls calls;

  /** Its calls on threads of the pool. */
  public final SubmittedCalls submitted;

  private final @Nullable Throwable creationSite;

  private final Node node;
  private final LeaseOwner pool;
  private final AtomicBoolean closed = new AtomicBoolean();

  /** Whether it is closed, and its last call has left. */
  private volatile boolean drained;

  private volatile VirtualGpuRequest request;

  private final ReentrantLock resizing = new ReentrantLock();
  private volatile boolean sizeUnclear;

  /** Its entry in the books of this JVM; null while another process decides. */
  private volatile @Nullable Booking booking;

  /** Its connection to the deciding process; null while this JVM decides. */
  private volatile RemoteTurns.@Nullable Tenant remote;

  /** Whether programs were put under it. If so, the deciding process knows more of its usage. */
  private volatile boolean enforced;

  private volatile @Nullable ProcessAttachment attachment;
  private volatile long attachedCallsNs;
  private volatile @Nullable ReclaimHandler reclaimHandler;
  private final ReentrantLock reclaiming = new ReentrantLock();

  Lease(String id, List<NodeGpu> gpus, LocalClaim claim) {
    this.id = id;
    this.on = gpus.get(0);
    this.gpus = List.copyOf(gpus);
    this.node = claim.node();
    this.pool = claim.pool();
    this.request = claim.request();
    this.creationSite = claim.creationSite();
    this.gate = new InProcessGate(id, seats(gpus), request, this);
    this.calls = new GatedCalls(gate);
    this.submitted = new SubmittedCalls(id, node.workers());
  }

  /** {@return the first of its GPUs} */
  public PhysicalGpu gpu() {
    return on.gpu();
  }

  /** {@return its GPUs} */
  public List<PhysicalGpu> gpus() {
    return gpus.stream().map(NodeGpu::gpu).toList();
  }

  /** {@return the ids of its GPUs} */
  public List<GpuId> gpuIds() {
    return gpus.stream().map(each -> each.gpu().id()).toList();
  }

  private static List<GpuSeat> seats(List<NodeGpu> gpus) {
    return gpus.stream().map(NodeGpu::seat).toList();
  }

  /** {@return what it is granted} */
  public VirtualGpuRequest request() {
    return request;
  }

  /** Records that another process replaced what it is granted. */
  public void request(VirtualGpuRequest replaced) {
    request = replaced;
  }

  /** Resizes it by another process, one at a time: results apply in the order of requests. */
  public void resizeInTurn(Runnable resize) {
    resizing.lock();
    try {
      resize.run();
    } finally {
      resizing.unlock();
    }
  }

  /** {@return whether another process may have resized it without that being known here} */
  public boolean isSizeUnclear() {
    return sizeUnclear;
  }

  /** Records whether another process may have resized it without that being known here. */
  public void sizeUnclear(boolean unclear) {
    sizeUnclear = unclear;
  }

  /** {@return the node that it belongs to} */
  public Node node() {
    return node;
  }

  @Override
  public boolean isClosed() {
    return closed.get();
  }

  /** {@return whether programs were put under it} */
  public boolean isEnforced() {
    return enforced;
  }

  /** Records that programs were put under it. */
  public void markEnforced() {
    enforced = true;
  }

  /** {@return whether this JVM runs under it} */
  public boolean isAttached() {
    return attachment != null;
  }

  /** Records that this JVM runs under it from now on. */
  public void attached(ProcessAttachment made) {
    attachedCallsNs = gate.usage().gpuTimeNs();
    attachment = made;
    gate.attach(made);
  }

  /** The GPU time of its calls before it was attached; the backend counts what they use later. */
  public long attachedCallsNs() {
    return attachedCallsNs;
  }

  /** {@return the handler that frees memory on request; null if there is none} */
  public @Nullable ReclaimHandler reclaimHandler() {
    return reclaimHandler;
  }

  /** Sets the handler that frees memory on request. */
  public void reclaimHandler(ReclaimHandler handler) {
    reclaimHandler = handler;
  }

  // ---- its place in the books

  @Nullable Booking booking() {
    return booking;
  }

  /** {@return its connection to the deciding process; null while this JVM decides} */
  public RemoteTurns.@Nullable Tenant remote() {
    return remote;
  }

  /** Records that another process decides from now on. */
  public void remote(RemoteTurns.Tenant speaks) {
    booking = null;
    remote = speaks;
  }

  @Override
  public TurnGate gate() {
    return gate;
  }

  @Override
  public InProcessGate localGate() {
    return gate;
  }

  @Override
  public void booked(Booking made, TenantGate tenant) {
    booking = made;
    remote = null;
    on.seat().take();
    gate.listen(tenant);
    on.seat().leave();
  }

  @Override
  public UsageReading usage() {
    return gate.usage();
  }

  @Override
  public @Nullable String tryResize(VirtualGpuRequest asked, TenantGate tenant) {
    String obstacle = gate.tryResize(asked);
    if (obstacle == null) {
      request = asked;
    }
    return obstacle;
  }

  @Override
  public boolean canReclaim() {
    return reclaimHandler != null && !isClosed();
  }

  @Override
  public void reclaim(long wantedBytes, Runnable answered) {
    ReclaimHandler handler = reclaimHandler;
    node.workers()
        .execute(
            () -> {
              reclaiming.lock();
              try {
                if (handler != null && !isClosed()) {
                  handler.reclaim(MemorySize.ofBytes(wantedBytes));
                }
              } catch (RuntimeException | Error e) {
                log.warn("a reclaim handler threw: id={}", id, e);
              } finally {
                reclaiming.unlock();
                answered.run();
              }
            });
  }

  @Override
  public void released() {
    pool.remove(this); // if it was never granted, nobody closes it
    node.remove(this);
  }

  /** {@return what this JVM knows of it} */
  public LeaseSnapshot snapshot() {
    return new LeaseSnapshot(id, gpuIds(), request, node.self().pid(), 0, List.of(), gate.usage());
  }

  // ---- the handle's side

  /** Releases everything, at once or when the last call has left. */
  public void close() {
    if (closed.compareAndSet(false, true)) {
      submitted.close();
      gate.close();
    }
  }

  /** Closes a lease that its owner forgot to close. */
  public void leaked() {
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
    node.publish(at -> new GpuEvent.Leaked(at, id));
    close();
  }

  // ---- the gate's side

  @Override
  public void drained() {
    ProcessAttachment made = attachment;
    if (made != null) {
      made.close(); // otherwise this JVM, which lives on, would prevent its release
    }
    pool.remove(this);
    drained = true;
    node.ended(this);
  }

  /**
   * Tells the deciding process once more that it has ended, if so: the last one may have kept it.
   */
  public void endIfDrained() {
    if (drained) {
      node.ended(this);
    }
  }

  @Override
  public void cancelFailed(String reason, @Nullable Throwable cause) {
    log.warn("calls of {} are not cancelled any more: {}", id, reason, cause);
    node.publish(at -> new GpuEvent.CancelFailed(at, id, reason));
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
