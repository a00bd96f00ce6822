package dev.vgpu.spring;

import dev.vgpu.CallOptions;
import dev.vgpu.Capabilities;
import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuTurn;
import dev.vgpu.GpuUsage;
import dev.vgpu.MemoryReservation;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.ReclaimHandler;
import dev.vgpu.VirtualGpu;
import dev.vgpu.VirtualGpuRequest;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A model's virtual GPU. While its GPU is lost, a call fails at once with the reason: a driver may
 * hang instead. A call that was running when the GPU was lost has the reason beside its own error.
 */
final class ModelGpu implements VirtualGpu {
  private final VirtualGpu gpu;
  private final LostGpus lost;

  ModelGpu(VirtualGpu gpu, LostGpus lost) {
    this.gpu = gpu;
    this.lost = lost;
  }

  private void check() {
    GpuDriverException failure = lost.failure(gpu);
    if (failure != null) {
      throw failure;
    }
  }

  private <E extends Exception> E explained(E error) {
    GpuDriverException failure = lost.failure(gpu);
    if (failure != null) {
      error.addSuppressed(failure);
    }
    return error;
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call) throws Exception {
    return call(call, CallOptions.defaults());
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception {
    check();
    try {
      return gpu.call(call, options);
    } catch (Exception e) {
      throw explained(e);
    }
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception {
    return call(call, CallOptions.defaults());
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception {
    check();
    try {
      return gpu.call(call, options);
    } catch (Exception e) {
      throw explained(e);
    }
  }

  @Override
  public void run(Runnable work) throws InterruptedException {
    run(work, CallOptions.defaults());
  }

  @Override
  public void run(Runnable work, CallOptions options) throws InterruptedException {
    check();
    try {
      gpu.run(work, options);
    } catch (RuntimeException e) {
      throw explained(e);
    }
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call) {
    return submit(call, CallOptions.defaults());
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options) {
    GpuDriverException failure = lost.failure(gpu);
    return failure == null ? gpu.submit(call, options) : CompletableFuture.failedFuture(failure);
  }

  @Override
  public GpuTurn enter() throws InterruptedException {
    return enter(CallOptions.defaults());
  }

  @Override
  public GpuTurn enter(CallOptions options) throws InterruptedException {
    check();
    return gpu.enter(options);
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
