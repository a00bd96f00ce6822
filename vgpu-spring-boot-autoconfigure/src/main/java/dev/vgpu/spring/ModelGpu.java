package dev.vgpu.spring;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuDriverException;
import dev.vgpu.GpuTurn;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import dev.vgpu.spi.ForwardingVirtualGpu;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A model's virtual GPU. While its GPU is lost, a call fails at once with the reason: a driver may
 * hang instead. A call that was running when the GPU was lost has the reason beside its own error.
 */
final class ModelGpu extends ForwardingVirtualGpu {
  private final LostGpus lost;

  ModelGpu(VirtualGpu gpu, LostGpus lost) {
    super(gpu);
    this.lost = lost;
  }

  private void check() {
    GpuDriverException failure = lost.failure(beneath());
    if (failure != null) {
      throw failure;
    }
  }

  private <E extends Exception> E explained(E error) {
    GpuDriverException failure = lost.failure(beneath());
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
      return beneath().call(call, options);
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
      return beneath().call(call, options);
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
      beneath().run(work, options);
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
    GpuDriverException failure = lost.failure(beneath());
    return failure == null
        ? beneath().submit(call, options)
        : CompletableFuture.failedFuture(failure);
  }

  @Override
  public GpuTurn enter() throws InterruptedException {
    return enter(CallOptions.defaults());
  }

  @Override
  public GpuTurn enter(CallOptions options) throws InterruptedException {
    check();
    return beneath().enter(options);
  }
}
