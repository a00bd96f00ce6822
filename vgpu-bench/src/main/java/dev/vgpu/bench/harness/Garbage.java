package dev.vgpu.bench.harness;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/**
 * A thread that produces garbage beside a live set, and repeatedly requests a full collection,
 * during which all threads of this JVM stand still. Safe for use by several threads.
 */
final class Garbage {
  private static final int LIVE = 400_000;
  private static final int BYTES = 64;
  private static final int BETWEEN_COLLECTIONS = 2_000_000;
  private static final long REST_MS = 60;

  private final byte[][] live = new byte[LIVE][];
  private final List<Double> fullMs = new ArrayList<>();
  private final long collectionsBefore = collections();
  private final long collectingMsBefore = collectingMs();
  private final Thread thread = new Thread(this::litter, "litter");
  private volatile boolean stopped;

  private Garbage() {}

  static Garbage start() {
    Garbage garbage = new Garbage();
    garbage.thread.setDaemon(true);
    garbage.thread.start();
    return garbage;
  }

  private void litter() {
    int at = 0;
    for (int made = 1; !stopped; made++) {
      // The replaced arrays have become old, so young collections alone do not free them.
      live[at] = new byte[BYTES];
      at = (at + 7_919) % LIVE;
      if (made % BETWEEN_COLLECTIONS == 0) {
        long beginNs = NanoClock.nanoTime();
        System.gc();
        fullMs.add((NanoClock.nanoTime() - beginNs) / 1e6);
        rest();
      }
    }
  }

  private void rest() {
    try {
      NanoClock.sleepMillis(REST_MS);
    } catch (InterruptedException e) {
      stopped = true;
    }
  }

  /** Stops, and reports the collections. */
  Map<String, Object> stop() {
    stopped = true;
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    Collections.sort(fullMs);
    return Map.of(
        "collections",
        collections() - collectionsBefore,
        "collecting_ms",
        collectingMs() - collectingMsBefore,
        "full",
        fullMs.size(),
        "full_p50_ms",
        fullMs.isEmpty() ? 0.0 : fullMs.get(fullMs.size() / 2),
        "full_max_ms",
        fullMs.isEmpty() ? 0.0 : fullMs.get(fullMs.size() - 1));
  }

  private static long collections() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .mapToLong(GarbageCollectorMXBean::getCollectionCount)
        .sum();
  }

  private static long collectingMs() {
    return ManagementFactory.getGarbageCollectorMXBeans().stream()
        .mapToLong(GarbageCollectorMXBean::getCollectionTime)
        .sum();
  }
}
