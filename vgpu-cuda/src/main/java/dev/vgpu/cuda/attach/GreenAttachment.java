package dev.vgpu.cuda.attach;

import com.sun.jna.Pointer;
import dev.vgpu.VgpuException;
import dev.vgpu.spi.ProcessAttachment;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * This process's part under a lease that has processors to itself: a thread that is bound works in
 * its green context. Safe for use by several threads.
 */
public final class GreenAttachment implements ProcessAttachment {
  /** What a thread's current context was before it was bound; absent: it is not bound in space. */
  private static final ThreadLocal<Outside> OUTSIDE = new ThreadLocal<>();

  /** That context; there may be none. */
  private record Outside(@Nullable Pointer context) {}

  private final ProcessAttachment beneath;
  private final GreenSpace.Part part;
  private final AtomicBoolean closed = new AtomicBoolean();

  private GreenAttachment(ProcessAttachment beneath, GreenSpace.Part part) {
    this.beneath = beneath;
    this.part = part;
  }

  /** Makes the green context of a lease; where that fails, the process leaves the lease. */
  public static GreenAttachment attach(ProcessAttachment beneath, Map<String, String> environment) {
    GreenSpace.Part part = null;
    try {
      part = inTheScopeOf(beneath, () -> GreenSpace.take(environment));
      return new GreenAttachment(beneath, part);
    } finally {
      if (part == null) {
        beneath.close();
      }
    }
  }

  /** On a thread of its own: the caller's may be bound to another lease. */
  private static GreenSpace.Part inTheScopeOf(
      ProcessAttachment lease, Callable<GreenSpace.Part> work) {
    FutureTask<GreenSpace.Part> task =
        new FutureTask<>(
            () -> {
              lease.bindThread();
              return work.call();
            });
    Thread thread = new Thread(task, "vgpu-green");
    thread.setDaemon(true);
    thread.start();
    try {
      return task.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new VgpuException("interrupted while a green context was made", e);
    } catch (ExecutionException e) {
      Throwable cause = e.getCause();
      throw new VgpuException(cause == null ? "" : String.valueOf(cause.getMessage()), e);
    }
  }

  @Override
  public void bindThread() {
    beneath.bindThread();
    if (OUTSIDE.get() == null) {
      OUTSIDE.set(new Outside(part.current()));
    }
    part.enter();
  }

  @Override
  public void unbindThread() {
    leaveSpace();
    beneath.unbindThread();
  }

  /** Gives the calling thread back the context that it had, if it is in a green one of ours. */
  static void leaveSpace() {
    Outside outside = OUTSIDE.get();
    if (outside != null) {
      OUTSIDE.remove();
      GreenSpace.restore(outside.context());
    }
  }

  @Override
  public void close() {
    if (closed.compareAndSet(false, true)) {
      part.close();
      beneath.close();
    }
  }
}
