package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Lateness;
import dev.vgpu.bench.harness.NanoClock;

/**
 * How late the machine wakes sleeping threads, on each of its processors. A processor of a virtual
 * machine may stand still for seconds. Confined to one thread.
 */
public final class Machine implements Lateness {
  private final Child watcher;
  private final LostTime late = new LostTime();
  private double worstMs;

  /** Asks a process whose threads sleep on each processor. */
  public Machine(Child watcher) {
    this.watcher = watcher;
  }

  /** {@return all time lost up to now} */
  LostTime look() throws InterruptedException {
    Answer answer = watcher.ask("read");
    late.add(NanoClock.nanoTime(), answer.number("sum_ns") / 1e6);
    worstMs = Math.max(worstMs, answer.number("worst_ns") / 1e6);
    return late;
  }

  /** {@return the longest delay of one thread up to the last look, in milliseconds} */
  public double worstMs() {
    return worstMs;
  }

  @Override
  public double lateMs(long sinceNs) throws InterruptedException {
    return look().sinceMs(sinceNs);
  }
}
