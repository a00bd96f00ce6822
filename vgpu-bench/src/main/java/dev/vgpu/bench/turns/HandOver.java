package dev.vgpu.bench.turns;

import dev.vgpu.bench.harness.NanoClock;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;

/**
 * The time from the end of one party's work to the start of the waiting party's work. There are two
 * threads, one for each party. The thread inside waits until the other has reached the gate, then
 * stays for a given time, so that the other is parked. The longer it stays, the deeper the other's
 * processor sleeps, and the longer the wake-up takes.
 */
final class HandOver {
  private final long stayNs;
  private final Histogram latencyNs = new Histogram(3);
  private final AtomicInteger failed = new AtomicInteger();
  private int lastParty = -1;
  private long leftNs;

  /** The parties at the gate, one bit each. */
  private final AtomicInteger atTheGate = new AtomicInteger();

  private final AtomicInteger atWork = new AtomicInteger(2);

  private HandOver(long stayNs) {
    this.stayNs = stayNs;
  }

  /** The measured latencies, in nanoseconds. */
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

  /** Runs with one party at a time. */
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
