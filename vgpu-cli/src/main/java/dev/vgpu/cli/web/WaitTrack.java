package dev.vgpu.cli.web;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * The waits of one tenant, as far as looks at it show them: a wait goes on from one look to the
 * next while the tenant waits in both and had no GPU time between. Not safe for several threads.
 */
final class WaitTrack {
  /** Where the bars of the histogram begin, but for the first, which begins at 0. */
  private static final long[] BOUNDS_MS = {1_000, 2_000, 5_000, 10_000, 30_000, 60_000};

  private final long[] ended = new long[BOUNDS_MS.length + 1];
  private long looks;
  private long waitingLooks;
  private boolean isWaiting;
  private long sinceMs;
  private long sinceWallMs;
  private long lastMs;

  /**
   * Takes what a look saw.
   *
   * @param nowMs when, on a clock that never goes back
   * @param wallMs when, for people
   * @param waits whether it waits now
   * @param progressed whether it had GPU time since the look before
   */
  void look(long nowMs, long wallMs, boolean waits, boolean progressed) {
    looks++;
    if (isWaiting && (!waits || progressed)) {
      ended[bar(lastMs - sinceMs)]++;
      isWaiting = false;
    }
    if (!waits) {
      return;
    }
    waitingLooks++;
    if (!isWaiting) {
      isWaiting = true;
      sinceMs = nowMs;
      sinceWallMs = wallMs;
    }
    lastMs = nowMs;
  }

  private static int bar(long lengthMs) {
    int bar = 0;
    while (bar < BOUNDS_MS.length && lengthMs >= BOUNDS_MS[bar]) {
      bar++;
    }
    return bar;
  }

  /** Adds the histogram, and since when it has been waiting if it does. */
  void put(ObjectNode json) {
    if (isWaiting) {
      json.put("since", sinceWallMs).put("waited_ms", lastMs - sinceMs);
    }
    ObjectNode waits = json.putObject("waits");
    waits.put("looks", looks).put("waiting_looks", waitingLooks);
    ArrayNode bounds = waits.putArray("from_ms").add(0);
    for (long bound : BOUNDS_MS) {
      bounds.add(bound);
    }
    ArrayNode counts = waits.putArray("ended");
    for (long count : ended) {
      counts.add(count);
    }
  }
}
