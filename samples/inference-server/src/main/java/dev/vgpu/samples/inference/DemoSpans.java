package dev.vgpu.samples.inference;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * Records when each tenant's calls ran on the device, for the demo. Safe for use by several threads
 * and lock-free, so that recording a call does not delay another one. Keeps the newest {@value
 * #CAPACITY}.
 */
final class DemoSpans {
  static final int CAPACITY = 1 << 18;

  private final AtomicReferenceArray<Span> ring = new AtomicReferenceArray<>(CAPACITY);
  private final AtomicLong next = new AtomicLong();
  private final long originNs = NanoClock.now();

  /** One call, in nanoseconds since the recording began. */
  record Span(int tenant, long startNs, long endNs) {}

  /** {@return the nanoseconds since the recording began} */
  long elapsedNs() {
    return NanoClock.now() - originNs;
  }

  /** Records a call that has just ended. */
  void add(int tenant, long startNs) {
    ring.setRelease(
        (int) (next.getAndIncrement() % CAPACITY), new Span(tenant, startNs, elapsedNs()));
  }

  /** {@return the recorded calls, in order of their starts} */
  List<Span> sorted() {
    List<Span> spans = new ArrayList<>();
    for (int i = 0; i < CAPACITY; i++) {
      Span span = ring.getAcquire(i);
      if (span == null) {
        break; // the ring has not been full yet
      }
      spans.add(span);
    }
    spans.sort(Comparator.comparingLong(Span::startNs));
    return spans;
  }

  /**
   * {@return the nanoseconds during which at least one call of the tenant ran}
   *
   * @param sorted from {@link #sorted}
   */
  static long unionNs(List<Span> sorted, int tenant) {
    long total = 0;
    long coveredUntil = 0;
    for (Span span : sorted) {
      if (span.tenant() == tenant) {
        total += Math.max(0, span.endNs() - Math.max(span.startNs(), coveredUntil));
        coveredUntil = Math.max(coveredUntil, span.endNs());
      }
    }
    return total;
  }
}
