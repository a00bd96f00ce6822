package dev.vgpu.micrometer;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuTurn;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.VirtualGpu;
import dev.vgpu.spi.ForwardingVirtualGpu;
import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.Timer;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A virtual GPU whose calls record how long they waited. A call that times out records nothing. */
final class TimedVirtualGpu extends ForwardingVirtualGpu {
  private final Timer waits;
  private final Clock clock;

  TimedVirtualGpu(VirtualGpu gpu, Timer waits, Clock clock) {
    super(gpu);
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
    return beneath().call(this.<T>timed(call));
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception {
    return beneath().call(this.<T>timed(call), options);
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception {
    return beneath().call(this.<T>timed(call));
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception {
    return beneath().call(this.<T>timed(call), options);
  }

  @Override
  public void run(Runnable work) throws InterruptedException {
    beneath().run(timed(work));
  }

  @Override
  public void run(Runnable work, CallOptions options) throws InterruptedException {
    beneath().run(timed(work), options);
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call) {
    return beneath().submit(this.<T>timed(call));
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options) {
    return beneath().submit(this.<T>timed(call), options);
  }

  @Override
  public GpuTurn enter() throws InterruptedException {
    long fromNs = clock.monotonicTime();
    GpuTurn turn = beneath().enter();
    waitedSince(fromNs);
    return turn;
  }

  @Override
  public GpuTurn enter(CallOptions options) throws InterruptedException {
    long fromNs = clock.monotonicTime();
    GpuTurn turn = beneath().enter(options);
    waitedSince(fromNs);
    return turn;
  }
}
