package dev.vgpu;

import org.jspecify.annotations.Nullable;

/**
 * A call that can be cancelled while it runs and run again later, as idempotent inference can.
 *
 * <p>When a more urgent tenant arrives, {@link #cancel()} is called while {@link #call()} runs. If
 * {@code call} then throws, whatever it throws, the attempt is taken as cancelled and {@code call}
 * is invoked again when the tenant's turn comes. If it returns, its result counts. After {@link
 * CallOptions#maxPreemptions()} cancelled attempts it runs uncancelled.
 *
 * @param <T> the type of the result
 */
public interface PreemptibleCall<T extends @Nullable Object> {
  /**
   * Does the work. Invoked by the thread that made the call, once per attempt, never twice at a
   * time.
   *
   * @return the result
   * @throws Exception any failure; passed on to the caller unless this attempt was cancelled
   */
  T call() throws Exception;

  /**
   * Asks the running attempt to end soon. Invoked at most once per attempt, by another thread,
   * while {@link #call()} runs or just after it has ended; never before the attempt began, and
   * never after the next attempt has begun or {@code VirtualGpu.call} has returned. Must return
   * quickly: one that throws or does not return within a second is reported as {@link
   * GpuEvent.CancelFailed}, is waited for no more, and the virtual GPU's calls are not cancelled
   * any more.
   */
  void cancel();
}
