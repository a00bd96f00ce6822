package dev.vgpu.core.pool;

import dev.vgpu.core.schedule.UrgencyQueue;
import org.jspecify.annotations.Nullable;

/** A thread that waits until its request fits. Guarded by the {@link LeaseTable}'s lock. */
final class PendingRequest extends UrgencyQueue.Node<PendingRequest> {
  final Thread thread = Thread.currentThread();
  final Asked asked;

  private @Nullable Lease lease;
  private @Nullable RuntimeException failure;
  private volatile boolean settled;

  PendingRequest(Asked asked) {
    super(asked.request().preemptionClass());
    this.asked = asked;
  }

  boolean isSettled() {
    return settled;
  }

  void grant(Lease granted) {
    lease = granted;
    settled = true; // release: pairs with the acquire in isSettled
  }

  void fail(RuntimeException why) {
    failure = why;
    settled = true; // release: pairs with the acquire in isSettled
  }

  /** After it has settled: what was granted; throws what it was sent away with instead. */
  Lease lease() {
    if (lease == null) {
      throw failure != null ? failure : new IllegalStateException("not settled");
    }
    return lease;
  }
}
