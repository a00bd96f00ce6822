package dev.vgpu.simulation;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A GPU in virtual time, with the express lane. It runs the work of one tenant at a time. Tenants
 * with work take turns of one slice; a tenant that is alone runs on. While the GPU changes from one
 * context to another, nothing runs. On the lane, more urgent work keeps others from launching. Not
 * thread-safe.
 */
final class VirtualDevice {
  private final long sliceNs;
  private final long changeNs;
  private final NodeObserver observer;
  private final List<VirtualGate> gates = new ArrayList<>();
  private long nowNs;
  private @Nullable VirtualGate running;
  private @Nullable VirtualGate last;
  private int turn;
  private long changedNs;
  private long sliceEndNs;
  private int urgentGates;
  private int urgentBusy;
  private boolean told;

  /**
   * Creates a GPU without tenants.
   *
   * @param sliceNs the time slice while several tenants have work
   * @param changeNs how long nothing runs when it changes to another context
   * @param observer observes what runs
   */
  VirtualDevice(long sliceNs, long changeNs, NodeObserver observer) {
    this.sliceNs = sliceNs;
    this.changeNs = changeNs;
    this.observer = observer;
  }

  long nowNs() {
    return nowNs;
  }

  NodeObserver observer() {
    return observer;
  }

  void add(VirtualGate gate) {
    gates.add(gate);
    urgentGates += gate.isUrgent() ? 1 : 0;
  }

  void remove(VirtualGate gate) {
    gates.remove(gate);
    urgentGates -= gate.isUrgent() ? 1 : 0;
    if (running == gate) {
      running = null;
    }
  }

  /** Stops time, because a gate has news for the scheduler. */
  void stop() {
    told = true;
  }

  /** Whether there is a tenant that may be busy on the lane. */
  boolean hasUrgent() {
    return urgentGates > 0;
  }

  boolean isLaneBusy() {
    return urgentBusy > 0;
  }

  /** Records that an urgent tenant became busy on the lane, or stopped being so. */
  void urgent(boolean busy) {
    urgentBusy += busy ? 1 : -1;
    if (urgentBusy == (busy ? 1 : 0)) {
      for (int i = 0; i < gates.size(); i++) {
        gates.get(i).laneChanged();
      }
    }
  }

  /**
   * Lets time pass until a gate has news, or until the end.
   *
   * @return the time then
   */
  long advance(long endNs) {
    told = false;
    while (true) {
      long nextNs = fireTimers(endNs);
      if (told || nowNs >= endNs) {
        return nowNs;
      }
      if (running == null || !running.isRunning()) {
        changeTo(nextWithWork());
      }
      if (running == null) {
        nowNs = nextNs;
      } else if (nowNs < changedNs) {
        nowNs = Math.min(nextNs, changedNs);
      } else {
        run(running, nextNs);
      }
    }
  }

  /** Fires the timers that are due now. */
  void settle() {
    long ignored = fireTimers(nowNs);
  }

  private void run(VirtualGate gate, long untilNs) {
    long fromNs = nowNs;
    long doneNs = fromNs + gate.remainingNs();
    long toNs = Math.min(untilNs, doneNs);
    if (toNs >= sliceEndNs) {
      // A tenant that is alone runs on; its slices are counted all the same.
      sliceEndNs += (fromNs - sliceEndNs + sliceNs) / sliceNs * sliceNs;
      if (toNs > sliceEndNs && isSharedBeside(gate)) {
        toNs = sliceEndNs;
      }
    }
    gate.serve(fromNs, toNs);
    nowNs = toNs;
    observer.ran(gate, fromNs, toNs);
    if (toNs == doneNs) {
      gate.kernelEnded();
    }
    if (toNs >= sliceEndNs && isSharedBeside(gate)) {
      changeTo(nextWithWork());
    }
  }

  private void changeTo(@Nullable VirtualGate next) {
    running = next;
    if (next != null) {
      boolean isOther = last != null && !last.sharesContext(next);
      changedNs = nowNs + (isOther ? changeNs : 0);
      sliceEndNs = changedNs + sliceNs;
      last = next;
    }
  }

  private boolean isSharedBeside(VirtualGate gate) {
    for (int i = 0; i < gates.size(); i++) {
      VirtualGate other = gates.get(i);
      if (other != gate && other.isRunning()) {
        return true;
      }
    }
    return false;
  }

  private @Nullable VirtualGate nextWithWork() {
    int count = gates.size();
    for (int i = 1; i <= count; i++) {
      int index = (turn + i) % count;
      VirtualGate gate = gates.get(index);
      if (gate.isRunning()) {
        turn = index;
        return gate;
      }
    }
    return null;
  }

  private long fireTimers(long endNs) {
    long nextNs = endNs;
    for (int i = 0; i < gates.size(); i++) {
      VirtualGate gate = gates.get(i);
      while (gate.timerNs() <= nowNs) {
        gate.fire();
      }
      nextNs = Math.min(nextNs, gate.timerNs());
    }
    return nextNs;
  }
}
