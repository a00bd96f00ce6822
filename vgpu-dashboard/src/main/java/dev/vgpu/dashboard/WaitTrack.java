package dev.vgpu.dashboard;

/**
 * The waits of one tenant, as far as looks can show them. A wait continues from one look to the
 * next if the tenant waits in both and had no GPU time in between. Not safe for several threads.
 */
final class WaitTrack {
  /** The lower bounds of the histogram's bars, without the first, which is 0. */
  private static final long[] BOUNDS_MS = {1_000, 2_000, 5_000, 10_000, 30_000, 60_000};

  private final long[] ended = new long[BOUNDS_MS.length + 1];
  private long looks;
  private long waitingLooks;
  private boolean isWaiting;
  private long sinceMs;
  private long sinceWallMs;
  private long lastMs;

  /**
   * Records a look.
   *
   * @param nowMs when, on a monotonic clock
   * @param wallMs when, for people
   * @param waits whether the tenant waits now
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

  /** Adds the histogram, and the start of the current wait if there is one. */
  void put(JsonText json) {
    if (isWaiting) {
      json.put("since", sinceWallMs).put("waited_ms", lastMs - sinceMs);
    }
    json.object("waits").put("looks", looks).put("waiting_looks", waitingLooks);
    json.array("from_ms").add(0);
    for (long bound : BOUNDS_MS) {
      json.add(bound);
    }
    json.endArray().array("ended");
    for (long count : ended) {
      json.add(count);
    }
    json.endArray().endObject();
  }
}
