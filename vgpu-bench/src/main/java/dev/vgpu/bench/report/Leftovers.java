package dev.vgpu.bench.report;

import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.PoolProcess;

/** Memory that processes still hold after their end. */
public final class Leftovers {
  private static final long PATIENCE_NS = 10_000_000_000L;

  private Leftovers() {}

  /** Milliseconds until the ledgers of all leases are empty. */
  public static long awaitNone(PoolProcess pool) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    for (long held = pool.memoryHeld(); held > 0; held = pool.memoryHeld()) {
      if (NanoClock.nanoTime() - beginNs > PATIENCE_NS) {
        throw new IllegalStateException(
            "memory of ended processes is still held: bytes=" + held + " " + pool.leases());
      }
      NanoClock.sleepMillis(1);
    }
    return (NanoClock.nanoTime() - beginNs) / 1_000_000;
  }
}
