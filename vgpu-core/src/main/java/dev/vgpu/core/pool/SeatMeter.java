package dev.vgpu.core.pool;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuUsage;
import dev.vgpu.UsageRecord;
import dev.vgpu.core.metering.Meter;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks once a second at what the virtual GPUs use, while there are any, and has it written down;
 * tells what can be seen only by looking. On a thread that exists as long as it is needed: neither
 * opening a pool nor a call waits for a file. Safe for use by several threads.
 */
final class SeatMeter implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatMeter.class);
  private static final long EVERY_NS = 1_000_000_000;

  private final Node node;
  private final Supplier<List<Booking>> bookings;
  private final Meter meter;
  private final AtomicBoolean runs = new AtomicBoolean();
  private volatile @Nullable Thread thread;
  private volatile boolean news;
  private volatile boolean closed;

  /** Written by the thread alone, of which there is one at a time. */
  private volatile long sampledNs;

  /**
   * Makes one.
   *
   * @param node where events are told
   * @param bookings what there is to be counted
   * @param directory where it is written; null: nowhere
   */
  SeatMeter(Node node, Supplier<List<Booking>> bookings, @Nullable Path directory) {
    this.node = node;
    this.bookings = bookings;
    this.sampledNs = node.clock().nanoTime();
    this.meter = new Meter(node.clock(), directory, this::failed);
  }

  private void failed(String reason) {
    log.warn("{}", reason);
    node.listeners().publish(at -> new GpuEvent.MeteringFailed(at, "", reason));
  }

  /** A virtual GPU was booked. */
  void opened(Booking booking) {
    meter.opened(booking.account);
    wake();
  }

  /** A virtual GPU that another process had in its books is in ours. */
  void restored(Booking booking) {
    meter.restored(booking.account);
    wake();
  }

  /** A virtual GPU was booked out. Not with the table's lock held. */
  void closed(Booking booking, GpuUsage usage) {
    meter.closed(new Meter.Reading(booking.account, usage));
    wake();
  }

  /** What was used from a moment on. Reads files. */
  List<UsageRecord> since(Instant since) {
    return meter.since(since, readings(bookings.get()));
  }

  private static List<Meter.Reading> readings(List<Booking> of) {
    List<Meter.Reading> readings = new ArrayList<>();
    for (Booking booking : of) {
      if (isKnown(booking)) {
        readings.add(new Meter.Reading(booking.account, booking.usage()));
      }
    }
    return readings;
  }

  /** Until its process has come back after a take-over, what its calls used is not known. */
  private static boolean isKnown(Booking booking) {
    return !(booking.calls instanceof RemoteLease remote)
        || remote.awaitedUntilNs == 0
        || remote.isClosed();
  }

  // ---- the thread

  private void wake() {
    news = true;
    if (closed) {
      return;
    }
    if (runs.compareAndSet(false, true)) {
      node.workers().execute(this::run);
    } else {
      LockSupport.unpark(thread);
    }
  }

  private void run() {
    thread = Thread.currentThread();
    try {
      boolean goesOn = true;
      while (goesOn && !closed) {
        news = false; // before looking: what comes meanwhile sets it again
        goesOn = look();
        if (goesOn && !news && !closed) {
          LockSupport.parkNanos(this, sampledNs + EVERY_NS - node.clock().nanoTime());
        }
      }
    } finally {
      thread = null;
      runs.set(false);
    }
    if (news && !closed) {
      wake(); // it came while this ended
    }
  }

  /** Takes one look; says whether there will be more to see. */
  private boolean look() {
    try {
      List<Booking> all = bookings.get();
      long nowNs = node.clock().nanoTime();
      if (nowNs - sampledNs >= EVERY_NS) {
        sampledNs = nowNs;
        meter.sample(readings(all));
        all.forEach(this::tellDenied);
        node.preemptions().tell();
      }
      meter.write();
      return !all.isEmpty() || meter.hasUnwritten();
    } catch (RuntimeException e) {
      log.error("what is used could not be looked at", e);
      return true;
    }
  }

  private void tellDenied(Booking booking) {
    long denied = meter.newlyDenied(booking.account);
    if (denied > 0) {
      GpuUsage usage = booking.usage();
      String reason =
          "more than its quota of "
              + booking.request().memory()
              + ", of which it held "
              + usage.memoryUsed()
              + " when this was noticed";
      node.listeners().publish(at -> new GpuEvent.AllocationDenied(at, booking.id, denied, reason));
    }
  }

  /** Takes a last look, and closes the files. */
  @Override
  public void close() {
    closed = true;
    LockSupport.unpark(thread);
    meter.sample(readings(bookings.get()));
    meter.close();
  }
}
