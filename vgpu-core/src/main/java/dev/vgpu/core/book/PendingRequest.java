package dev.vgpu.core.book;

import dev.vgpu.core.schedule.UrgencyQueue;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A request of a thread of this JVM or of another process, until it is granted or refused. Guarded
 * by the {@link LeaseTable}'s lock.
 */
public final class PendingRequest extends UrgencyQueue.Node<PendingRequest> {
  /** The request and its owner. */
  public final Asked asked;

  private final Consumer<PendingRequest> whenSettled;

  /** Whether it waits only for the work of a backend that may make room, and not for others. */
  boolean once;

  private @Nullable Booking booking;
  private @Nullable RuntimeException failure;
  private volatile boolean settled;

  /** Creates one; {@code whenSettled} runs with the table's lock held and must not block. */
  public PendingRequest(Asked asked, Consumer<PendingRequest> whenSettled) {
    super(asked.request().preemptionClass());
    this.asked = asked;
    this.whenSettled = whenSettled;
  }

  /** {@return whether it was granted or refused} */
  public boolean isSettled() {
    return settled;
  }

  void grant(Booking granted) {
    booking = granted;
    settled = true; // release: pairs with the acquire in isSettled
    whenSettled.accept(this);
  }

  void fail(RuntimeException why) {
    failure = why;
    settled = true; // release: pairs with the acquire in isSettled
    whenSettled.accept(this);
  }

  /** The granted booking, once settled; throws the failure if the request failed. */
  public Booking booking() {
    if (booking == null) {
      throw failure != null ? failure : new IllegalStateException("not settled");
    }
    return booking;
  }
}
