package dev.vgpu.core.book;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.flight.FlightEvents;
import dev.vgpu.core.metering.Meter;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.SharingMode;
import dev.vgpu.watch.UsageRecord;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Samples the use of all virtual GPUs once a second while there are any, has it written to the
 * journal, and publishes events that only sampling can detect. Runs on a thread that exists only
 * while it is needed, so neither opening a pool nor a call waits for a file. Safe for use by
 * several threads.
 */
public final class SeatMeter implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SeatMeter.class);
  private static final long EVERY_NS = 1_000_000_000;

  private final NodeContext node;
  private final Supplier<List<Booking>> bookings;
  private final Supplier<List<GpuState>> states;

  /** How each GPU was shared when that was last published; used by the thread only. */
  private final Map<GpuId, SharingMode> told = new ConcurrentHashMap<>();

  private final @Nullable Path directory;
  private final ReentrantLock lock = new ReentrantLock();

  /** The lock guards writes. */
  private volatile @Nullable Meter made;

  private final AtomicBoolean runs = new AtomicBoolean();
  private volatile @Nullable Thread thread;
  private final Queue<News> news = new ConcurrentLinkedQueue<>();
  private volatile boolean closed;
  private volatile boolean abandoned;

  /** Written only by the thread, of which there is one at a time. */
  private volatile long sampledNs;

  /**
   * Creates one.
   *
   * @param node publishes the events
   * @param bookings the leases to sample
   * @param states how the GPUs are shared
   * @param directory where use is written; null if nowhere
   */
  SeatMeter(
      NodeContext node,
      Supplier<List<Booking>> bookings,
      Supplier<List<GpuState>> states,
      @Nullable Path directory) {
    this.node = node;
    this.bookings = bookings;
    this.states = states;
    this.sampledNs = node.clock().nanoTime();
    this.directory = directory;
  }

  /** The meter, informed of all news in order; created on first use. Called with the lock held. */
  private Meter meter() {
    Meter meter = made;
    if (meter == null) {
      meter = new Meter(node.clock(), directory, this::failed);
      made = meter;
      if (abandoned) {
        meter.abandon();
      }
    }
    for (News each = news.poll(); each != null; each = news.poll()) {
      each.tell(meter);
      if (each.usage() != null) {
        tellDenied(meter, each.booking(), each.usage()); // it may have lived only briefly
      }
    }
    return meter;
  }

  private Meter upToDate() {
    lock.lock();
    try {
      return meter();
    } finally {
      lock.unlock();
    }
  }

  private void failed(String reason) {
    log.warn("{}", reason);
    node.listeners().publish(at -> new GpuEvent.MeteringFailed(at, "", reason));
  }

  /** What happened to a virtual GPU. Queued for the thread, so that no caller waits. */
  private record News(What what, Booking booking, long atNs, long atMs, @Nullable GpuUsage usage) {
    enum What {
      OPENED,
      RESTORED,
      CLOSED
    }

    void tell(Meter meter) {
      if (usage != null) {
        meter.closed(new Meter.Reading(booking.account, usage));
      } else if (what == What.RESTORED) {
        meter.restored(booking.account);
      } else {
        meter.opened(booking.account, atNs, atMs);
      }
    }
  }

  private void add(News.What what, Booking booking, @Nullable GpuUsage usage) {
    NanoClock clock = node.clock();
    long atMs = clock.now().toEpochMilli();
    news.add(new News(what, booking, clock.nanoTime(), atMs, usage));
    wake();
  }

  /** Records that a virtual GPU was booked. */
  void opened(Booking booking) {
    add(News.What.OPENED, booking, null);
  }

  /** Records that a virtual GPU was taken over from another process's book. */
  void restored(Booking booking) {
    add(News.What.RESTORED, booking, null);
  }

  /** Records that a virtual GPU was booked out. */
  void closed(Booking booking, GpuUsage usage) {
    add(News.What.CLOSED, booking, usage);
  }

  /** The use since a given moment. Reads files. */
  public List<UsageRecord> since(Instant since) {
    List<Meter.Reading> readings = readings(bookings.get());
    return upToDate().since(since, readings);
  }

  /** A part of the use of some virtual GPUs since a given moment. Reads files. */
  public Meter.Part part(Instant since, String from, Predicate<String> isWanted) {
    List<Meter.Reading> readings = readings(bookings.get());
    return upToDate().part(since, from, isWanted, readings);
  }

  private static List<Meter.Reading> readings(List<Booking> of) {
    List<Meter.Reading> readings = new ArrayList<>();
    for (Booking booking : of) {
      if (booking.calls.isUsageKnown()) {
        readings.add(new Meter.Reading(booking.account, booking.usage()));
      }
    }
    return readings;
  }

  // ---- the thread

  private void wake() {
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
        goesOn = look();
        if (goesOn && news.isEmpty() && !closed) {
          LockSupport.parkNanos(this, sampledNs + EVERY_NS - node.clock().nanoTime());
        }
      }
    } finally {
      thread = null;
      runs.set(false);
    }
    if (!news.isEmpty() && !closed) {
      wake(); // news arrived while this ended
    }
  }

  /** Takes one sample. Returns whether there will be more to sample. */
  private boolean look() {
    try {
      List<Booking> all = bookings.get();
      Meter meter = upToDate();
      long nowNs = node.clock().nanoTime();
      if (nowNs - sampledNs >= EVERY_NS) {
        sampledNs = nowNs;
        List<Meter.Reading> readings = readings(all);
        meter.sample(readings);
        readings.forEach(each -> FlightEvents.record(each.account().id(), each.usage()));
        all.forEach(booking -> tellDenied(meter, booking, booking.usage()));
        states.get().forEach(this::tellSharing);
        node.preemptions().tell();
      }
      meter.write();
      return !all.isEmpty() || meter.hasUnwritten();
    } catch (RuntimeException | Error e) {
      log.error("usage could not be sampled", e);
      return true;
    }
  }

  /** Publishes only a change between the shared modes: idle and alone come and go all the time. */
  private void tellSharing(GpuState state) {
    boolean isShared = state.mode() == SharingMode.OVERLAP || state.mode() == SharingMode.STRICT;
    if (isShared && told.put(state.gpu(), state.mode()) != state.mode()) {
      node.listeners()
          .publish(
              at -> new GpuEvent.SharingChanged(at, "", state.gpu(), state.mode(), state.reason()));
    }
  }

  private void tellDenied(Meter meter, Booking booking, GpuUsage usage) {
    long denied = meter.newlyDenied(booking.account);
    if (denied > 0) {
      String reason =
          "more than its quota of "
              + booking.request().memory()
              + ", of which it held "
              + usage.memoryUsed()
              + " when this was noticed";
      node.listeners().publish(at -> new GpuEvent.AllocationDenied(at, booking.id, denied, reason));
    }
  }

  /** Writes nothing more, except at {@link #close}. Does not wait. */
  void stop() {
    closed = true;
    LockSupport.unpark(thread);
  }

  /** Leaves the files to the next holder of the seat. Does not wait. */
  public void abandon() {
    abandoned = true;
    Meter meter = made;
    if (meter != null) {
      meter.abandon();
    }
  }

  /** Takes a last sample, and closes the files. */
  @Override
  public void close() {
    stop();
    if (made != null || !news.isEmpty()) {
      List<Meter.Reading> readings = readings(bookings.get());
      Meter meter = upToDate();
      meter.sample(readings);
      meter.close();
    }
  }
}
