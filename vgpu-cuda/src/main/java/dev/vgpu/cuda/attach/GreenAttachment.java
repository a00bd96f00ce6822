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
 * This process's attachment to a lease that has processors to itself. A bound thread works in the
 * lease's green context. Safe for use by several threads.
 */
public final class GreenAttachment implements ProcessAttachment {
  /** The context that a thread had before it was bound; unset while it is in no green context. */
  private static final ThreadLocal<Outside> OUTSIDE = new ThreadLocal<>();

  /** The earlier context; null if there was none. */
  private record Outside(@Nullable Pointer context) {}

  private final ProcessAttachment beneath;
  private final GreenSpace.Part part;
  private final AtomicBoolean closed = new AtomicBoolean();

  private GreenAttachment(ProcessAttachment beneath, GreenSpace.Part part) {
    this.beneath = beneath;
    this.part = part;
  }

  /** Creates the green context of a lease. If that fails, the process leaves the lease. */
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

  /** Works on a new thread, because the calling thread may be bound to another lease. */
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

  /** If the calling thread is in one of our green contexts, restores its earlier context. */
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
