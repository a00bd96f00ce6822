package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.RunDelays;
import java.util.List;
import java.util.function.Supplier;

/**
 * Decides how long to wait for processes: a limit, plus the time that they have lost meanwhile. If
 * a thread is runnable but does not run for many seconds, the machine is at fault; virtual machines
 * do this. If it sleeps, or runs without an end, the process is at fault. Confined to one thread.
 */
public final class Patience {
  private static final long MOST_NS = 150_000_000_000L;
  private static final long LOOK_MS = 1_000;

  private final Machine machine;
  private final Supplier<List<Long>> pids;
  private final RunDelays delays = new RunDelays();
  private final long beginNs = NanoClock.nanoTime();

  /** Begins the wait. */
  public Patience(Machine machine, Supplier<List<Long>> pids) {
    this.machine = machine;
    this.pids = pids;
    mostMs();
  }

  private double mostMs() {
    delays.begin();
    return pids.get().stream().mapToDouble(delays::ofMs).max().orElse(0);
  }

  private double passedNs() {
    return NanoClock.nanoTime() - beginNs;
  }

  /** {@return whether the wait has lasted too long} */
  public boolean isOver(long limitNs) throws InterruptedException {
    if (passedNs() <= limitNs) {
      return false;
    }
    double lostMs = pids.get().stream().mapToDouble(delays::ofMs).max().orElse(0);
    if (passedNs() <= limitNs + (lostMs + machine.lateMs(beginNs)) * 1e6) {
      return false;
    }
    return passedNs() > MOST_NS || !isLeftStanding();
  }

  private boolean isLeftStanding() throws InterruptedException {
    RunDelays now = new RunDelays();
    for (long pid : pids.get()) {
      now.ofMs(pid);
    }
    NanoClock.sleepMillis(LOOK_MS);
    return pids.get().stream().anyMatch(now::isLeftStanding);
  }
}
