package dev.vgpu.samples.inference;

import dev.vgpu.CallOptions;
import dev.vgpu.GpuTimeoutException;
import dev.vgpu.PreemptibleCall;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Runs calls without vgpu, to compare with: calls go straight to the device, and only their number
 * per model is bounded, as with vgpu.
 */
final class DemoUnshared implements Turns {
  private static final int ALL_WAITING = 1 << 20;

  private final Semaphore places;
  private volatile boolean closed;

  DemoUnshared(int maxConcurrentCalls) {
    places = new Semaphore(maxConcurrentCalls, true);
  }

  @Override
  public <T> T call(PreemptibleCall<T> call, CallOptions options) throws Exception {
    if (options.timeout().isEmpty()) {
      places.acquire();
    } else if (!places.tryAcquire(options.timeout().get().toNanos(), TimeUnit.NANOSECONDS)) {
      throw new GpuTimeoutException("no place within " + options.timeout().get());
    }
    try {
      if (closed) {
        throw new IllegalStateException("closed");
      }
      return call.call();
    } finally {
      places.release();
    }
  }

  /** Makes waiting calls fail. */
  void close() {
    closed = true;
    places.release(ALL_WAITING);
  }
}
