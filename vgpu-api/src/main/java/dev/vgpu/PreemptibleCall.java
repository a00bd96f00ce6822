package dev.vgpu;

import dev.vgpu.watch.GpuEvent;
import org.jspecify.annotations.Nullable;

/**
 * A call that can be cancelled while it runs and then run again, as idempotent inference can.
 *
 * <p>When a more urgent tenant arrives, {@link #cancel()} is called while {@link #call()} runs. If
 * {@code call} then throws an exception other than {@link InterruptedException}, the attempt counts
 * as cancelled, and {@code call} is invoked again at the tenant's next turn. If it returns, its
 * result counts. After {@link CallOptions#maxPreemptions()} cancelled attempts it runs without
 * being cancelled.
 *
 * @param <T> the type of the result
 */
public interface PreemptibleCall<T extends @Nullable Object> {
  /**
   * Does the work. Invoked on the caller's thread, once per attempt, never concurrently.
   *
   * @return the result
   * @throws Exception any failure; thrown to the caller unless this attempt was cancelled. An
   *     {@link InterruptedException} is always thrown to the caller
   */
  T call() throws Exception;

  /**
   * Asks the running attempt to end soon. Invoked at most once per attempt, on another thread,
   * while {@link #call()} runs or just after it has ended. Never invoked before the attempt began,
   * after the next attempt began, or after {@code VirtualGpu.call} returned.
   *
   * <p>Must return quickly. If it throws or does not return within a second, the pool reports
   * {@link GpuEvent.CancelFailed}, stops waiting for it, and no longer cancels calls of this
   * virtual GPU.
   */
  void cancel();
}
