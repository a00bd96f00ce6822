package dev.vgpu.core.pool;

import static java.util.Objects.requireNonNull;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions.LeakTracking;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.node.Authority;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.node.LeaseOwner;
import dev.vgpu.core.node.LocalClaim;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.reclaim.Suspensions;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuListener;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import dev.vgpu.watch.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;

/** A pool opened by a caller. Closing it closes every lease acquired through it. */
final class NodePool implements GpuPool, LeaseOwner {
  private final Node node;
  private final LeakTracking leakTracking;
  private final Supplier<List<EnforcementBackend>> backends;
  private final Discovery discovery;
  private final Runnable whenClosed;
  private final Set<Lease> leases = ConcurrentHashMap.newKeySet();
  private final Set<Runnable> listenings = ConcurrentHashMap.newKeySet();
  private final AtomicBoolean closed = new AtomicBoolean();

  NodePool(
      Node node,
      LeakTracking leakTracking,
      Supplier<List<EnforcementBackend>> backends,
      Discovery discovery,
      Runnable whenClosed) {
    this.node = node;
    this.leakTracking = leakTracking;
    this.backends = backends;
    this.discovery = discovery;
    this.whenClosed = whenClosed;
  }

  @Override
  public boolean isClosed() {
    return closed.get();
  }

  @Override
  public void add(Lease lease) {
    leases.add(lease);
  }

  @Override
  public void remove(Lease lease) {
    leases.remove(lease);
  }

  /**
   * The backends that can put this process under a virtual GPU, whichever process holds the seat.
   */
  List<EnforcementBackend> installedBackends() {
    return backends.get();
  }

  private LocalClaim claim(VirtualGpuRequest request) {
    boolean tracked = leakTracking == LeakTracking.CREATION_SITE;
    return new LocalClaim(request, node, this, tracked ? new Throwable("acquired here") : null);
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return node.gpus();
  }

  @Override
  public List<GpuLease> leases() {
    return node.askUninterruptibly(Authority::leases);
  }

  @Override
  public List<UsageRecord> usageSince(Instant since) {
    requireNonNull(since, "since");
    return node.askUninterruptibly(decides -> decides.usageSince(since));
  }

  @Override
  public List<GpuState> states() {
    return node.askUninterruptibly(Authority::states);
  }

  @Override
  public List<GpuReading> readings() {
    return discovery.readings(node.gpus());
  }

  @Override
  public List<GpuPart> parts(GpuId gpu) {
    requireNonNull(gpu, "gpu");
    PhysicalGpu of =
        gpus().stream()
            .filter(each -> each.id().equals(gpu))
            .findFirst()
            .orElseThrow(() -> new IllegalArgumentException("no such GPU: gpu=" + gpu));
    return installedBackends().stream()
        .filter(backend -> backend.serves(of))
        .flatMap(backend -> backend.parts(of).stream())
        .toList();
  }

  @Override
  public List<BackendChoice> explain(VirtualGpuRequest request) {
    requireNonNull(request, "request");
    checkOpen();
    return node.askUninterruptibly(decides -> decides.explain(request));
  }

  @Override
  public List<GpuEvent> recentEvents() {
    return node.askUninterruptibly(Authority::recentEvents);
  }

  @Override
  public List<BackendStatus> backends() {
    return node.backends();
  }

  @Override
  public VirtualGpu acquire(VirtualGpuRequest request) {
    requireNonNull(request, "request");
    checkOpen();
    LocalClaim claim = claim(request);
    return new LeasedVirtualGpu(node.askUninterruptibly(decides -> decides.acquire(claim)), this);
  }

  @Override
  public Optional<VirtualGpu> tryAcquire(VirtualGpuRequest request, Duration timeout)
      throws InterruptedException {
    requireNonNull(request, "request");
    if (requireNonNull(timeout, "timeout").isNegative()) {
      throw new IllegalArgumentException("a timeout is negative: timeout=" + timeout);
    }
    checkOpen();
    LocalClaim claim = claim(request);
    long timeoutNs = nanos(timeout);
    long startNs = node.clock().nanoTime();
    return node.ask(
            decides ->
                decides.tryAcquire(
                    claim, Math.max(0, timeoutNs - (node.clock().nanoTime() - startNs))))
        .map(lease -> new LeasedVirtualGpu(lease, this));
  }

  /** Caps timeouts at 146 years, so that adding the clock's time cannot overflow. */
  private static long nanos(Duration timeout) {
    Duration longest = Duration.ofNanos(Long.MAX_VALUE / 2);
    return (timeout.compareTo(longest) < 0 ? timeout : longest).toNanos();
  }

  private void checkOpen() {
    if (isClosed()) {
      throw new IllegalStateException("the pool is closed");
    }
  }

  @Override
  public List<String> makeRoom(VirtualGpuRequest request) {
    requireNonNull(request, "request");
    checkOpen();
    return node.askUninterruptibly(decides -> decides.makeRoom(request));
  }

  @Override
  public void suspend(String virtualGpu, Duration timeout) {
    suspend(node, requireNonNull(virtualGpu, "virtualGpu"), requireNonNull(timeout, "timeout"));
  }

  @Override
  public void resume(String virtualGpu, Duration timeout) {
    resume(node, requireNonNull(virtualGpu, "virtualGpu"), requireNonNull(timeout, "timeout"));
  }

  static void suspend(Node node, String id, Duration timeout) {
    long timeoutNs = shortNanos(timeout);
    String ignored =
        node.askUninterruptibly(
            decides -> {
              decides.suspend(id, timeoutNs);
              return id;
            });
  }

  static void resume(Node node, String id, Duration timeout) {
    long timeoutNs = shortNanos(timeout);
    String ignored =
        node.askUninterruptibly(
            decides -> {
              decides.resume(id, timeoutNs);
              return id;
            });
  }

  /** Caps timeouts of suspending and resuming. */
  private static long shortNanos(Duration timeout) {
    if (timeout.isNegative() || timeout.isZero()) {
      throw new IllegalArgumentException("a timeout is not above 0: timeout=" + timeout);
    }
    Duration longest = Suspensions.LONGEST;
    return (timeout.compareTo(longest) < 0 ? timeout : longest).toNanos();
  }

  @Override
  public Listening listen(GpuListener listener) {
    requireNonNull(listener, "listener");
    checkOpen();
    Runnable stop = node.listen(listener);
    listenings.add(stop);
    return () -> {
      listenings.remove(stop);
      stop.run();
    };
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      node.failPending(this);
      leases.forEach(Lease::close);
      listenings.forEach(Runnable::run);
      whenClosed.run();
    }
  }
}
