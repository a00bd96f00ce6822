package dev.vgpu.bench;

import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;

/**
 * The time from the end of one party's work to the begin of the other's, which waits for it,
 * parked. Two threads, each on behalf of one party; each stays inside long enough for the other to
 * park.
 */
final class HandOver {
  private static final long STAY_NS = 50_000;

  private final Histogram latencyNs = new Histogram(3);
  private final AtomicInteger failed = new AtomicInteger();
  private int lastParty = -1;
  private long leftNs;

  private HandOver() {}

  /** What was measured, in nanoseconds. */
  static Histogram measure(Gate gate, int rounds) throws InterruptedException {
    run(gate, rounds / 4); // warms up
    return run(gate, rounds);
  }

  private static Histogram run(Gate gate, int rounds) throws InterruptedException {
    HandOver measured = new HandOver();
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
        gate.run(party, () -> inside(party));
      }
    } catch (InterruptedException e) {
      failed.incrementAndGet();
    }
  }

  /** One party at a time is in here. */
  private void inside(int party) {
    long nowNs = NanoClock.nanoTime();
    if (lastParty >= 0 && lastParty != party) {
      latencyNs.recordValue(nowNs - leftNs);
    }
    lastParty = party;
    while (NanoClock.nanoTime() - nowNs < STAY_NS) {
      Thread.onSpinWait();
    }
    leftNs = NanoClock.nanoTime();
  }
}
