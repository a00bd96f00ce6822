package dev.vgpu.core.pool;

import static java.util.Objects.requireNonNull;

import dev.vgpu.BackendStatus;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuListener;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions.LeakTracking;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VirtualGpu;
import dev.vgpu.VirtualGpuRequest;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;

/** A pool as one caller opened it: what was acquired through it is closed with it. */
final class NodePool implements GpuPool {
  private final Node node;
  private final LeakTracking leakTracking;
  private final Discovery discovery;
  private final Runnable whenClosed;
  private final Set<Lease> leases = ConcurrentHashMap.newKeySet();
  private final Set<Runnable> listenings = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean closed = new AtomicBoolean();

  NodePool(Node node, LeakTracking leakTracking, Discovery discovery, Runnable whenClosed) {
    this.node = node;
    this.leakTracking = leakTracking;
    this.discovery = discovery;
    this.whenClosed = whenClosed;
  }

  boolean isClosed() {
    return closed.get();
  }

  void add(Lease lease) {
    leases.add(lease);
  }

  void remove(Lease lease) {
    leases.remove(lease);
  }

  private Asked asked(VirtualGpuRequest request) {
    boolean tracked = leakTracking == LeakTracking.CREATION_SITE;
    return new Asked(request, this, tracked ? new Throwable("acquired here") : null);
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return node.table().gpus();
  }

  @Override
  public List<GpuLease> leases() {
    return node.table().leases();
  }

  @Override
  public List<BackendStatus> backends() {
    List<BackendStatus> statuses = new ArrayList<>(discovery.statuses());
    statuses.add(InProcessBackend.status());
    return statuses;
  }

  @Override
  public VirtualGpu acquire(VirtualGpuRequest request) {
    InProcessBackend.check(requireNonNull(request, "request"));
    return new LeasedVirtualGpu(node.table().acquire(asked(request)), this);
  }

  @Override
  public Optional<VirtualGpu> tryAcquire(VirtualGpuRequest request, Duration timeout)
      throws InterruptedException {
    requireNonNull(request, "request");
    if (requireNonNull(timeout, "timeout").isNegative()) {
      throw new IllegalArgumentException("a timeout is negative: timeout=" + timeout);
    }
    InProcessBackend.check(request);
    return node.table()
        .tryAcquire(asked(request), nanos(timeout))
        .map(lease -> new LeasedVirtualGpu(lease, this));
  }

  /** Long timeouts are cut to 146 years, so that adding the clock cannot overflow. */
  private static long nanos(Duration timeout) {
    Duration longest = Duration.ofNanos(Long.MAX_VALUE / 2);
    return (timeout.compareTo(longest) < 0 ? timeout : longest).toNanos();
  }

  @Override
  public Listening listen(GpuListener listener) {
    requireNonNull(listener, "listener");
    if (isClosed()) {
      throw new IllegalStateException("the pool is closed");
    }
    Runnable stop = node.listeners().listen(listener);
    listenings.add(stop);
    return () -> {
      listenings.remove(stop);
      stop.run();
    };
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      node.table().failPending(this);
      leases.forEach(Lease::close);
      listenings.forEach(Runnable::run);
      whenClosed.run();
    }
  }
}
