package dev.vgpu.core.events;

import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.Tenant;
import dev.vgpu.core.schedule.TurnObserver;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Publishes preemptions, at most one event a second for each pair of tenants. The first preemption
 * is published at once. Repetitions within a second are counted and published together. So a storm
 * of short requests causes a few events a second, not thousands. Thread-safe.
 */
public final class Preemptions {
  private static final Logger log = LoggerFactory.getLogger(Preemptions.class);
  private static final long TOGETHER_NS = 1_000_000_000;

  private record Pair(String victim, String by) {}

  private static final class Tally {
    long toldNs;
    int cancelled;
    long times;
  }

  private final Listeners listeners;
  private final NanoClock clock;
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<Pair, Tally> tallies = new HashMap<>();

  /** Creates an instance that has counted nothing. */
  public Preemptions(Listeners listeners, NanoClock clock) {
    this.listeners = listeners;
    this.clock = clock;
  }

  /**
   * {@return an observer of a GPU's scheduler, which publishes preemptions and stalls}
   *
   * @param gpu the GPU
   * @param seat the owner of the scheduler
   */
  public TurnObserver observer(GpuId gpu, GpuSeat seat) {
    return new TurnObserver() {
      @Override
      public void preempted(Tenant victim, Tenant by, int askedToEnd) {
        seat.doAfterwards(() -> add(victim.id(), by.id(), askedToEnd));
      }

      @Override
      public void stoodStill(Tenant tenant, String what) {
        log.warn("a GPU was stalled and has recovered: gpu={} id={} {}", gpu, tenant.id(), what);
        String reason = "its GPU was stalled and has recovered: gpu=" + gpu + " " + what;
        seat.doAfterwards(
            () -> listeners.publish(at -> new GpuEvent.Disturbed(at, tenant.id(), reason)));
      }
    };
  }

  /** Counts one preemption. */
  public void add(String victim, String by, int cancelledCalls) {
    add(victim, by, cancelledCalls, 1);
  }

  /** Counts several preemptions. */
  public void add(String victim, String by, int cancelledCalls, long times) {
    Pair pair = new Pair(victim, by);
    lock.lock();
    try {
      Tally tally = tallies.get(pair);
      if (tally != null) {
        tally.times += times;
        tally.cancelled += cancelledCalls;
        return;
      }
      tally = new Tally();
      tally.toldNs = clock.nanoTime();
      tallies.put(pair, tally);
    } finally {
      lock.unlock();
    }
    publish(pair, cancelledCalls, times);
  }

  /** Publishes the preemptions counted since the last event. Call it periodically. */
  public void tell() {
    List<Runnable> due = new ArrayList<>();
    long nowNs = clock.nanoTime();
    lock.lock();
    try {
      Iterator<Map.Entry<Pair, Tally>> all = tallies.entrySet().iterator();
      while (all.hasNext()) {
        Map.Entry<Pair, Tally> each = all.next();
        Runnable event = due(each.getKey(), each.getValue(), nowNs);
        if (event != null) {
          due.add(event);
        } else if (nowNs - each.getValue().toldNs >= TOGETHER_NS) {
          all.remove(); // quiet for a second: the next one is published at once again
        }
      }
    } finally {
      lock.unlock();
    }
    due.forEach(Runnable::run);
  }

  private @Nullable Runnable due(Pair pair, Tally tally, long nowNs) {
    if (tally.times == 0 || nowNs - tally.toldNs < TOGETHER_NS) {
      return null;
    }
    int cancelled = tally.cancelled;
    long times = tally.times;
    tally.toldNs = nowNs;
    tally.cancelled = 0;
    tally.times = 0;
    return () -> publish(pair, cancelled, times);
  }

  private void publish(Pair pair, int cancelled, long times) {
    listeners.publish(at -> new GpuEvent.Preempted(at, pair.victim(), pair.by(), cancelled, times));
  }
}
