package dev.vgpu.micrometer;

import dev.vgpu.CallOptions;
import dev.vgpu.Capabilities;
import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuTurn;
import dev.vgpu.GpuUsage;
import dev.vgpu.MemoryReservation;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.ReclaimHandler;
import dev.vgpu.VirtualGpu;
import dev.vgpu.VirtualGpuRequest;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Timer;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A virtual GPU whose calls record how long they waited. A call that times out records nothing. */
final class TimedVirtualGpu implements VirtualGpu {
  private final VirtualGpu gpu;
  private final Timer waits;
  private final Clock clock;

  TimedVirtualGpu(VirtualGpu gpu, Timer waits, Clock clock) {
    this.gpu = gpu;
    this.waits = waits;
    this.clock = clock;
  }

  private void waitedSince(long fromNs) {
    waits.record(clock.monotonicTime() - fromNs, TimeUnit.NANOSECONDS);
  }

  private <T extends @Nullable Object> Callable<T> timed(Callable<? extends T> call) {
    long fromNs = clock.monotonicTime();
    return () -> {
      waitedSince(fromNs);
      return call.call();
    };
  }

  private Runnable timed(Runnable work) {
    long fromNs = clock.monotonicTime();
    return () -> {
      waitedSince(fromNs);
      work.run();
    };
  }

  /** Times the wait before the first attempt, but not the waits after a preemption. */
  private <T extends @Nullable Object> PreemptibleCall<T> timed(PreemptibleCall<? extends T> call) {
    long fromNs = clock.monotonicTime();
    return new PreemptibleCall<>() {
      private boolean started;

      @Override
      public T call() throws Exception {
        if (!started) {
          started = true;
          waitedSince(fromNs);
        }
        return call.call();
      }

      @Override
      public void cancel() {
        call.cancel();
      }
    };
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call) throws Exception {
    return gpu.call(this.<T>timed(call));
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception {
    return gpu.call(this.<T>timed(call), options);
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception {
    return gpu.call(this.<T>timed(call));
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception {
    return gpu.call(this.<T>timed(call), options);
  }

  @Override
  public void run(Runnable work) throws InterruptedException {
    gpu.run(timed(work));
  }

  @Override
  public void run(Runnable work, CallOptions options) throws InterruptedException {
    gpu.run(timed(work), options);
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call) {
    return gpu.submit(this.<T>timed(call));
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options) {
    return gpu.submit(this.<T>timed(call), options);
  }

  @Override
  public GpuTurn enter() throws InterruptedException {
    long fromNs = clock.monotonicTime();
    GpuTurn turn = gpu.enter();
    waitedSince(fromNs);
    return turn;
  }

  @Override
  public GpuTurn enter(CallOptions options) throws InterruptedException {
    long fromNs = clock.monotonicTime();
    GpuTurn turn = gpu.enter(options);
    waitedSince(fromNs);
    return turn;
  }

  @Override
  public String id() {
    return gpu.id();
  }

  @Override
  public PhysicalGpu gpu() {
    return gpu.gpu();
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return gpu.gpus();
  }

  @Override
  public VirtualGpuRequest request() {
    return gpu.request();
  }

  @Override
  public Capabilities capabilities() {
    return gpu.capabilities();
  }

  @Override
  public Process start(ProcessBuilder program) throws IOException {
    return gpu.start(program);
  }

  @Override
  public Map<String, String> environment() {
    return gpu.environment();
  }

  @Override
  public ContainerSpec containerSpec() {
    return gpu.containerSpec();
  }

  @Override
  public void attachThisJvm() {
    gpu.attachThisJvm();
  }

  @Override
  public boolean hasHeadroom(MemorySize size) {
    return gpu.hasHeadroom(size);
  }

  @Override
  public Optional<MemoryReservation> tryReserve(MemorySize size) {
    return gpu.tryReserve(size);
  }

  @Override
  public void onReclaim(ReclaimHandler handler) {
    gpu.onReclaim(handler);
  }

  @Override
  public GpuUsage usage() {
    return gpu.usage();
  }

  @Override
  public void resize(VirtualGpuRequest request) {
    gpu.resize(request);
  }

  @Override
  public void suspend(Duration timeout) {
    gpu.suspend(timeout);
  }

  @Override
  public void resume(Duration timeout) {
    gpu.resume(timeout);
  }

  @Override
  public boolean isClosed() {
    return gpu.isClosed();
  }

  @Override
  public void close() {
    gpu.close();
  }

  @Override
  public String toString() {
    return gpu.toString();
  }
}
