package dev.vgpu.core.turn;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.SchedulerSettings;
import dev.vgpu.core.schedule.ShareScheduler;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/**
 * Several GPUs with their seats, and tenants of one or more GPUs, in virtual time on one thread.
 */
final class GangNode {
  static final long US = 1_000;
  static final long MS = 1_000_000;
  static final long S = 1_000_000_000;
  static final long TURN = 2 * MS;

  final List<GpuSeat> seats = new ArrayList<>();
  final List<ShareScheduler> schedulers = new ArrayList<>();
  final List<Worker> workers = new ArrayList<>();
  final List<String> decisions = new ArrayList<>();
  private final TreeMap<Long, List<Runnable>> agenda = new TreeMap<>();
  private final NanoClock clock = new VirtualClock();
  long nowNs;

  private final class VirtualClock implements NanoClock {
    @Override
    public long nanoTime() {
      return nowNs;
    }

    @Override
    public Instant now() {
      return Instant.EPOCH.plusNanos(nowNs);
    }
  }

  GangNode(int gpus) {
    SchedulerSettings settings =
        new SchedulerSettings(TURN, TURN, 100 * US, 0, true, SchedulerSettings.LOCKOUT_NS);
    try (SeatThread thread = new SeatThread(clock)) { // time advances only when told
      for (int i = 0; i < gpus; i++) {
        GpuSeat seat = new GpuSeat(clock, thread);
        ShareScheduler scheduler =
            new ShareScheduler(
                settings,
                (victim, by, asked) ->
                    decisions.add(nowNs + " " + by.id() + " preempts " + victim.id()),
                0);
        seat.take();
        seat.follow(scheduler);
        seat.stepAndLeave();
        seats.add(seat);
        schedulers.add(scheduler);
      }
    }
  }

  static VirtualGpuRequest request(SharePolicy policy, int percent, PreemptionClass cls) {
    VirtualGpuRequest.Builder builder =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(1))
            .policy(policy)
            .preemptionClass(cls);
    return percent == 0 ? builder.build() : builder.computePercent(percent).build();
  }

  /** A tenant whose calls run one after the other, each on all its GPUs. */
  final class Worker implements TurnGate {
    final String id = "t" + workers.size();
    final List<Integer> gpus;
    final long callNs;
    final TenantGate gate;
    private final GpuSeat seat;

    /** Negative if the supply is endless. */
    private int queued;

    private boolean open;
    private boolean contended;
    private long callStartNs;
    long callEndNs = Long.MAX_VALUE;
    private long doneNs;
    int finished;
    int opened;

    Worker(List<Integer> gpus, long callNs, int queued, VirtualGpuRequest request) {
      this.gpus = gpus;
      this.callNs = callNs;
      this.queued = queued;
      this.seat = seats.get(gpus.get(0));
      this.gate =
          gpus.size() == 1
              ? new TenantGate(id, seat, schedulers.get(gpus.get(0)), this, request)
              : new TenantGate(
                  id,
                  gpus.stream().map(seats::get).toList(),
                  gpus.stream().map(schedulers::get).toList(),
                  this,
                  request,
                  TURN);
    }

    boolean isRunning() {
      return callEndNs != Long.MAX_VALUE;
    }

    boolean isOpen() {
      return open;
    }

    long usedNs() {
      return doneNs + (isRunning() ? nowNs - callStartNs : 0);
    }

    void arrive(int calls) {
      seat.take();
      queued += calls;
      gate.wanted();
      startNext();
      seat.stepAndLeave();
    }

    private void startNext() {
      if (open && !isRunning() && queued != 0) {
        queued -= queued > 0 ? 1 : 0;
        callStartNs = nowNs;
        callEndNs = nowNs + callNs;
      }
    }

    private void end() {
      seat.take();
      doneNs += callEndNs - callStartNs;
      callEndNs = Long.MAX_VALUE;
      finished++;
      startNext();
      if (!isRunning() && (!open || contended)) {
        gate.drained();
      }
      seat.stepAndLeave();
    }

    /** Closes it and cuts off its running call. */
    void close() {
      callEndNs = Long.MAX_VALUE;
      queued = 0;
      open = false;
      gate.end();
    }

    @Override
    public void open() {
      open = true;
      opened++;
      decisions.add(nowNs + " " + id);
      startNext();
    }

    @Override
    public boolean shut() {
      open = false;
      return !isRunning();
    }

    @Override
    public int preempt() {
      return 0;
    }

    @Override
    public boolean hasWork() {
      return isRunning() || queued != 0;
    }

    @Override
    public long gpuTimeNs(long atNs) {
      return doneNs + (isRunning() ? Math.max(0, atNs - callStartNs) : 0);
    }

    @Override
    public void contended(boolean isContended) {
      contended = isContended;
    }
  }

  /** Adds a tenant with an endless supply of calls. */
  Worker backlogged(List<Integer> gpus, long callNs, VirtualGpuRequest request) {
    Worker worker = new Worker(gpus, callNs, -1, request);
    workers.add(worker);
    at(nowNs, () -> worker.arrive(0));
    return worker;
  }

  /** Adds a tenant whose calls arrive from outside. */
  Worker sporadic(List<Integer> gpus, long callNs, VirtualGpuRequest request) {
    Worker worker = new Worker(gpus, callNs, 0, request);
    workers.add(worker);
    return worker;
  }

  void at(long atNs, Runnable action) {
    agenda.computeIfAbsent(atNs, key -> new ArrayList<>()).add(action);
  }

  /** Lets time pass, and checks after each step that no two tenants use a GPU at once. */
  void runUntil(long endNs) {
    for (long nextNs = nextEventNs(); nextNs <= endNs; nextNs = nextEventNs()) {
      nowNs = Math.max(nowNs, nextNs);

      for (Worker worker : workers) {
        if (worker.callEndNs <= nowNs) {
          worker.end();
        }
      }
      while (!agenda.isEmpty() && agenda.firstKey() <= nowNs) {
        agenda.pollFirstEntry().getValue().forEach(Runnable::run);
      }
      for (GpuSeat seat : seats) {
        if (seat.wakeAtNs() <= nowNs) {
          seat.tick();
        }
      }
      check();
    }
    nowNs = endNs;
  }

  private long nextEventNs() {
    long nextNs = agenda.isEmpty() ? Long.MAX_VALUE : agenda.firstKey();
    for (Worker worker : workers) {
      nextNs = Math.min(nextNs, worker.callEndNs);
    }
    for (GpuSeat seat : seats) {
      nextNs = Math.min(nextNs, seat.wakeAtNs());
    }
    return nextNs == Long.MAX_VALUE ? nextNs : Math.max(nowNs, nextNs);
  }

  private void check() {
    for (int gpu = 0; gpu < seats.size(); gpu++) {
      int open = 0;
      for (Worker worker : workers) {
        boolean uses = worker.isOpen() || worker.isRunning();
        open += uses && worker.gpus.contains(gpu) ? 1 : 0;
      }
      if (open > 1) {
        throw new AssertionError("gpu " + gpu + " is used by " + open + " at " + nowNs);
      }
    }
  }
}
