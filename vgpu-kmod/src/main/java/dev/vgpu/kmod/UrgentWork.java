package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.US_ASCII;

import java.io.IOException;
import java.io.OutputStream;
import java.util.Collection;
import java.util.Optional;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Tells the module while urgent leases have work, so that it stops the offline ones, if {@link
 * Machine#stopsOffline} says so. The open device also has the module keep weights exact. The module
 * forgets each message after {@value #MOST_MS} ms: if the seat's process is stopped or hangs,
 * offline leases run again. One thread does all of it, because a write returns only when the
 * channel groups have been stopped.
 */
final class UrgentWork implements AutoCloseable {
  /** How long one message holds. */
  static final int MOST_MS = 1000;

  /** How often it is renewed, and how often a lease that has processes is looked at. */
  private static final int AGAIN_MS = 250;

  /** The module gives up a group after 50 tries, each 20 ms after the last. */
  private static final int CLOSE_SECONDS = 5;

  private final Machine machine;
  private final Supplier<Collection<KmodLease>> leases;
  private final ScheduledExecutorService thread;
  private volatile Optional<String> failure = Optional.empty();

  /* Only used by the thread. */
  private @Nullable OutputStream device;
  private @Nullable Future<?> next;
  private boolean held;

  UrgentWork(Machine machine, Supplier<Collection<KmodLease>> leases, ThreadFactory threads) {
    this.machine = machine;
    this.leases = leases;
    this.thread = Executors.newSingleThreadScheduledExecutor(threads);
  }

  /** Looks at the leases soon: one was added, changed or ended, or its processes did. */
  void changed() {
    try {
      thread.execute(this::look);
    } catch (RejectedExecutionException e) {
      // Closed.
    }
  }

  /** {@return why offline leases are not stopped, in words; empty if no problem is known} */
  Optional<String> failure() {
    return machine.stopsOffline()
        ? failure
        : Optional.of(
            "offline leases are not stopped: the kernel sees no launches; with "
                + Machine.STOP_OFFLINE
                + "=1 they are stopped while an urgent program is on the GPU, even if it is idle");
  }

  private void look() {
    if (next != null) {
      next.cancel(false);
      next = null;
    }
    boolean waits = false;
    boolean works = false;
    for (KmodLease lease : leases.get()) {
      waits |= lease.mayHaveUrgentWork();
      works |= lease.hasUrgentWork();
    }
    boolean told = tell(works && machine.stopsOffline());
    if (waits || (!told && !leases.get().isEmpty())) {
      again();
    }
  }

  private void again() {
    try {
      next = thread.schedule(this::look, AGAIN_MS, TimeUnit.MILLISECONDS);
    } catch (RejectedExecutionException e) {
      // Closed.
    }
  }

  /** The device stays open between messages, so that no other process becomes the scheduler. */
  private boolean tell(boolean works) {
    try {
      OutputStream to = device;
      if (to == null) {
        to = machine.scheduler();
        device = to;
      }
      if (works || held) {
        to.write(("online " + (works ? MOST_MS : 0)).getBytes(US_ASCII));
        to.flush();
      }
      held = works;
      failure = Optional.empty();
      return true;
    } catch (IOException e) {
      failure =
          Optional.of("offline leases are not stopped: /dev/vgpu cannot be written: " + reason(e));
      letGo();
      return false;
    }
  }

  private static String reason(IOException e) {
    String said = e.getMessage();
    return said == null ? e.getClass().getSimpleName() : said;
  }

  /** The module gives everything back when the device is closed. */
  private void letGo() {
    held = false;
    OutputStream was = device;
    device = null;
    try {
      if (was != null) {
        was.close();
      }
    } catch (IOException e) {
      // Closed all the same.
    }
  }

  @Override
  public void close() {
    changed();
    try {
      thread.execute(this::letGo);
    } catch (RejectedExecutionException e) {
      return; // closed before
    }
    thread.shutdown();
    try {
      boolean ignored = thread.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
