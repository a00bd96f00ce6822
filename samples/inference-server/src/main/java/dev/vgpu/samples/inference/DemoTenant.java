package dev.vgpu.samples.inference;

import dev.vgpu.CallOptions;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAccumulator;
import java.util.concurrent.atomic.LongAdder;

/** The demo's measurements of one model in one phase. Safe for use by several threads. */
final class DemoTenant {
  private final int index;
  private final VirtualGpuRequest request;
  private final DemoSpans spans;
  private final LongAdder attempts = new LongAdder();
  private final LongAdder cancelled = new LongAdder();
  private final AtomicLong memory = new AtomicLong(EmbeddingModel.WEIGHTS.bytes());
  private final LongAccumulator peak = new LongAccumulator(Math::max, memory.get());

  DemoTenant(int index, VirtualGpuRequest request, DemoSpans spans) {
    this.index = index;
    this.request = request;
    this.spans = spans;
  }

  int index() {
    return index;
  }

  VirtualGpuRequest request() {
    return request;
  }

  /** {@return the number of attempts of calls that ran} */
  long attempts() {
    return attempts.sum();
  }

  /** {@return the number of cancelled attempts} */
  long cancelled() {
    return cancelled.sum();
  }

  /**
   * {@return the largest sum, in bytes, of the weights and the memory stated by concurrent calls}
   */
  long memoryPeakBytes() {
    return peak.get();
  }

  /** {@return the same turns, with each call recorded} */
  Turns noting(Turns turns) {
    return new Turns() {
      @Override
      public <T> T call(PreemptibleCall<T> call, CallOptions options) throws Exception {
        return turns.call(new Noted<>(call, options.memory().bytes()), options);
      }
    };
  }

  /** Runs inside the turn, once per attempt, so it sees the same work as the device. */
  private final class Noted<T> implements PreemptibleCall<T> {
    private final PreemptibleCall<T> call;
    private final long bytes;

    Noted(PreemptibleCall<T> call, long bytes) {
      this.call = call;
      this.bytes = bytes;
    }

    @Override
    public T call() throws Exception {
      attempts.increment();
      peak.accumulate(memory.addAndGet(bytes));
      long startNs = spans.elapsedNs();
      try {
        return call.call();
      } finally {
        spans.add(index, startNs);
        memory.addAndGet(-bytes);
      }
    }

    @Override
    public void cancel() {
      cancelled.increment();
      call.cancel();
    }
  }
}
