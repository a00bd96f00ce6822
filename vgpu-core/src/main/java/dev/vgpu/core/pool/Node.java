package dev.vgpu.core.pool;

import com.google.common.util.concurrent.ThreadFactoryBuilder;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.core.turn.SeatThread;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/**
 * The GPUs that this JVM manages together: their seats, the leases on them, and the threads behind.
 * One node stands behind all pools that are open on the same GPUs. Safe for use by several threads.
 */
final class Node {
  private static final int IDLE_THREAD_SECONDS = 5;

  private final SchedulerSettings settings;
  private final ExecutorService workers;
  private final Listeners listeners;
  private final SeatThread seatThread;
  private final LeaseTable table;
  private final Consumer<Node> whenLeaseReleased;
  private final AtomicLong leasesMade = new AtomicLong();

  Node(
      List<PhysicalGpu> gpus,
      GpuPoolOptions options,
      NanoClock clock,
      Consumer<Node> whenLeaseReleased) {
    this.whenLeaseReleased = whenLeaseReleased;
    this.settings = SchedulerSettings.from(options);
    this.workers =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            IDLE_THREAD_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            new ThreadFactoryBuilder().setDaemon(true).setNameFormat("vgpu-worker-%d").build());
    this.listeners = new Listeners(clock, workers);
    this.seatThread = new SeatThread(clock);
    this.table = new LeaseTable(this, gpus.stream().map(gpu -> slot(gpu, clock)).toList(), clock);
  }

  private GpuSlot slot(PhysicalGpu gpu, NanoClock clock) {
    GpuSeat[] seat = new GpuSeat[1];
    seat[0] =
        new GpuSeat(
            settings,
            (victim, by, askedToEnd) ->
                seat[0].doAfterwards(
                    () ->
                        listeners.publish(
                            at -> new GpuEvent.Preempted(at, victim.id(), by.id(), askedToEnd))),
            clock,
            seatThread);
    return new GpuSlot(gpu, seat[0]);
  }

  SchedulerSettings settings() {
    return settings;
  }

  LeaseTable table() {
    return table;
  }

  Listeners listeners() {
    return listeners;
  }

  /** Threads for what must not run on a caller's thread; as many as are needed, none when idle. */
  ExecutorService workers() {
    return workers;
  }

  /** Books out a lease that was closed and has drained. */
  void released(Lease lease) {
    table.released(lease);
    whenLeaseReleased.accept(this);
  }

  String newLeaseId(String name) {
    return name + "-" + leasesMade.incrementAndGet();
  }

  /** Ends the threads, when no pool is open and nothing is leased any more. */
  void shutDown() {
    seatThread.close();
  }
}
