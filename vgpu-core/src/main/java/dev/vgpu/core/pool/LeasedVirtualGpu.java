package dev.vgpu.core.pool;

import static java.util.Objects.requireNonNull;

import dev.vgpu.CallOptions;
import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuTurn;
import dev.vgpu.MemoryReservation;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.ReclaimHandler;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.node.Lease;
import dev.vgpu.core.turn.GatedCalls;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The handle that the caller holds. If it becomes unreachable, its lease is closed. */
final class LeasedVirtualGpu implements VirtualGpu {
  private static final AtomicReference<@Nullable Cleaner> CLEANER = new AtomicReference<>();

  private final Lease lease;

  /**
   * Keeps the pool reachable: a pool whose handle is lost must not be closed before its virtual
   * GPUs.
   */
  @SuppressWarnings("UnusedVariable")
  private final NodePool pool;

  private final Programs programs;
  private final Cleaner.Cleanable leakCheck;

  LeasedVirtualGpu(Lease lease, NodePool pool) {
    this.lease = lease;
    this.pool = pool;
    this.programs = new Programs(lease);
    this.leakCheck = cleaner().register(this, lease::leaked);
  }

  /**
   * {@return the cleaner for lost handles} Created on first use, so that a failure to start its
   * thread does not fail the class; a later call tries again.
   */
  static Cleaner cleaner() {
    Cleaner made = CLEANER.get();
    if (made != null) {
      return made;
    }
    Cleaner another = Cleaner.create(); // an unused cleaner ends by itself
    Cleaner first = CLEANER.compareAndExchange(null, another);
    return first == null ? another : first;
  }

  private GatedCalls calls() {
    programs.followThisJvm(pool::installedBackends);
    return lease.calls;
  }

  @Override
  public String id() {
    return lease.id;
  }

  @Override
  public PhysicalGpu gpu() {
    return lease.gpu();
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return lease.gpus();
  }

  @Override
  public VirtualGpuRequest request() {
    return lease.request();
  }

  @Override
  public Capabilities capabilities() {
    return lease.node().askUninterruptibly(decides -> decides.capabilities(lease));
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call) throws Exception {
    return calls().call(requireNonNull(call, "call"), CallOptions.defaults(), this);
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception {
    return calls().call(requireNonNull(call, "call"), requireNonNull(options, "options"), this);
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception {
    return calls().call(requireNonNull(call, "call"), CallOptions.defaults(), this);
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception {
    return calls().call(requireNonNull(call, "call"), requireNonNull(options, "options"), this);
  }

  @Override
  public void run(Runnable work) throws InterruptedException {
    run(work, CallOptions.defaults());
  }

  @Override
  public void run(Runnable work, CallOptions options) throws InterruptedException {
    requireNonNull(work, "work");
    GpuTurn turn = calls().enter(requireNonNull(options, "options"), this);
    try {
      work.run();
    } finally {
      turn.close();
    }
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call) {
    return submit(call, CallOptions.defaults());
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options) {
    requireNonNull(call, "call");
    requireNonNull(options, "options");
    int mostThreads =
        Math.min(lease.request().maxConcurrentCalls(), Runtime.getRuntime().availableProcessors());
    // The queued call refers to this handle and keeps it reachable until the call has ended.
    return lease.submitted.submit(() -> this.<T>call(call, options), mostThreads);
  }

  @Override
  public GpuTurn enter() throws InterruptedException {
    return calls().enter(CallOptions.defaults(), this);
  }

  @Override
  public GpuTurn enter(CallOptions options) throws InterruptedException {
    return calls().enter(requireNonNull(options, "options"), this);
  }

  @Override
  public Process start(ProcessBuilder program) throws IOException {
    return programs.start(requireNonNull(program, "program"), pool::installedBackends);
  }

  @Override
  public Map<String, String> environment() {
    return programs.environment();
  }

  @Override
  public ContainerSpec containerSpec() {
    return programs.containerSpec(pool.installedBackends());
  }

  @Override
  public void attachThisJvm() {
    programs.attachThisJvm(pool.installedBackends());
  }

  @Override
  public boolean hasHeadroom(MemorySize size) {
    return lease.gate.hasHeadroom(requireNonNull(size, "size").bytes());
  }

  @Override
  public Optional<MemoryReservation> tryReserve(MemorySize size) {
    if (requireNonNull(size, "size").bytes() == 0) {
      throw new IllegalArgumentException("a reservation is 0: size=" + size);
    }
    return lease.gate.tryReserve(size.bytes())
        ? Optional.of(new Reservation(this, size))
        : Optional.empty();
  }

  @Override
  public void onReclaim(ReclaimHandler handler) {
    lease.reclaimHandler(requireNonNull(handler, "handler"));
    Lease ignored =
        lease
            .node()
            .askUninterruptibly(
                decides -> {
                  decides.reclaimable(lease);
                  return lease;
                });
  }

  @Override
  public GpuUsage usage() {
    return lease.node().askUninterruptibly(decides -> decides.usage(lease));
  }

  @Override
  public void resize(VirtualGpuRequest request) {
    requireNonNull(request, "request");
    Lease ignored =
        lease
            .node()
            .askUninterruptibly(
                decides -> {
                  decides.resize(lease, request);
                  return lease;
                });
  }

  @Override
  public void suspend(Duration timeout) {
    NodePool.suspend(lease.node(), id(), requireNonNull(timeout, "timeout"));
  }

  @Override
  public void resume(Duration timeout) {
    NodePool.resume(lease.node(), id(), requireNonNull(timeout, "timeout"));
  }

  @Override
  public boolean isClosed() {
    return lease.isClosed();
  }

  @Override
  public void close() {
    lease.close();
    leakCheck.clean(); // finds the lease closed and deregisters the handle
  }

  @Override
  public String toString() {
    return "VirtualGpu[id=" + lease.id + " gpu=" + ids() + " " + lease.request() + "]";
  }

  private String ids() {
    return lease.gpuIds().stream().map(GpuId::value).collect(Collectors.joining(","));
  }

  private static final class Reservation implements MemoryReservation {
    private final LeasedVirtualGpu gpu;
    private final MemorySize size;
    private final AtomicBoolean closed = new AtomicBoolean();

    Reservation(LeasedVirtualGpu gpu, MemorySize size) {
      this.gpu = gpu;
      this.size = size;
    }

    @Override
    public MemorySize size() {
      return size;
    }

    @Override
    public void close() {
      if (closed.compareAndSet(false, true)) {
        gpu.lease.gate.release(size.bytes());
      }
    }
  }
}
