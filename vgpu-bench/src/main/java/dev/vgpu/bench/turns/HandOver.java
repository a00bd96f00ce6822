package dev.vgpu.bench.turns;

import dev.vgpu.bench.harness.NanoClock;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;

/**
 * The time from the end of one party's work to the begin of the other's, which waits for it. Two
 * threads, each on behalf of one party. Who is inside waits until the other has come to the gate,
 * and then stays for a given time, so that the other is parked: the longer, the deeper its
 * processor sleeps, and the longer the wake-up takes.
 */
final class HandOver {
  private final long stayNs;
  private final Histogram latencyNs = new Histogram(3);
  private final AtomicInteger failed = new AtomicInteger();
  private int lastParty = -1;
  private long leftNs;

  /** Which of the parties is at the gate: a bit each. */
  private final AtomicInteger atTheGate = new AtomicInteger();

  private final AtomicInteger atWork = new AtomicInteger(2);

  private HandOver(long stayNs) {
    this.stayNs = stayNs;
  }

  /** What was measured, in nanoseconds. */
  static Histogram measure(Gate gate, long stayNs, int rounds) throws InterruptedException {
    run(gate, stayNs, rounds / 2); // warms up
    return run(gate, stayNs, rounds);
  }

  private static Histogram run(Gate gate, long stayNs, int rounds) throws InterruptedException {
    HandOver measured = new HandOver(stayNs);
    Thread[] threads = new Thread[2];
    for (int i = 0; i < threads.length; i++) {
      int party = i;
      threads[i] = new Thread(() -> measured.take(gate, party, rounds), "party-" + i);
      threads[i].start();
    }
    for (Thread thread : threads) {
      thread.join();
    }
    if (measured.failed.get() > 0) {
      throw new IllegalStateException("a party was interrupted");
    }
    return measured.latencyNs;
  }

  private void take(Gate gate, int party, int rounds) {
    try {
      for (int i = 0; i < rounds; i++) {
        atTheGate.accumulateAndGet(1 << party, (a, b) -> a | b);
        gate.run(party, () -> inside(party));
      }
    } catch (InterruptedException e) {
      failed.incrementAndGet();
    } finally {
      atWork.decrementAndGet();
    }
  }

  /** One party at a time is in here. */
  private void inside(int party) {
    long nowNs = NanoClock.nanoTime();
    if (lastParty >= 0 && lastParty != party) {
      latencyNs.recordValue(nowNs - leftNs);
    }
    lastParty = party;
    atTheGate.accumulateAndGet(~(1 << party), (a, b) -> a & b);
    while (atTheGate.get() == 0 && atWork.get() == 2) {
      Thread.onSpinWait();
    }
    long fromNs = NanoClock.nanoTime();
    while (NanoClock.nanoTime() - fromNs < stayNs) {
      Thread.onSpinWait();
    }
    leftNs = NanoClock.nanoTime();
  }
}
