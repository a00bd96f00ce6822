package dev.vgpu.dashboard;

import dev.vgpu.watch.GpuLease;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.List;
import java.util.OptionalDouble;
import java.util.Set;

/**
 * The history of one tenant over the last {@value #LOOKS} looks: what it held, what it was entitled
 * to, and its waits. Not safe for several threads.
 */
final class TenantTrack {
  /** How many looks are kept. */
  static final int LOOKS = 300;

  private static final double PERCENT = 100;
  private static final double TENTHS = 10;

  private final double[] held = new double[LOOKS];
  private final double[] entitled = new double[LOOKS];
  private final WaitTrack waitTrack = new WaitTrack();
  private Set<Long> processes = Set.of();
  private long lastNs;
  private long lastGpuNs;
  private long lastCopyNs;
  private boolean wasSeen;
  private OptionalDouble heldPercent = OptionalDouble.empty();
  private OptionalDouble copyPercent = OptionalDouble.empty();

  TenantTrack() {
    Arrays.fill(held, Double.NaN);
    Arrays.fill(entitled, Double.NaN);
  }

  /**
   * Records a look.
   *
   * @param lease the tenant
   * @param look the look's index, from 0
   * @param nowNs when, on a monotonic clock
   * @param isLost whether its GPU does not answer, so that nothing is measured
   * @return the tenant's processes that have gone since the look before
   */
  List<Long> look(GpuLease lease, long look, long nowNs, boolean isLost) {
    long gpuNs = lease.usage().gpuTime().toNanos();
    long copyNs = lease.usage().copyTime().toNanos();
    boolean isMeasured = wasSeen && !isLost && gpuNs >= lastGpuNs && nowNs > lastNs;
    double lengthNs = nowNs - lastNs;
    heldPercent = percent(isMeasured, (gpuNs - lastGpuNs) / lengthNs);
    copyPercent = percent(isMeasured && copyNs >= lastCopyNs, (copyNs - lastCopyNs) / lengthNs);
    lastNs = nowNs;
    lastGpuNs = gpuNs;
    lastCopyNs = copyNs;
    int at = (int) (look % LOOKS);
    held[at] = heldPercent.orElse(Double.NaN);
    entitled[at] = lease.entitledPercent();
    List<Long> gone = new ArrayList<>(processes);
    gone.removeAll(lease.processes());
    processes = new HashSet<>(lease.processes());
    wasSeen = true;
    return gone;
  }

  private static OptionalDouble percent(boolean isMeasured, double part) {
    return isMeasured ? OptionalDouble.of(PERCENT * part) : OptionalDouble.empty();
  }

  void waits(long nowNs, long wallMs, boolean waits) {
    boolean progressed = heldPercent.isEmpty() || heldPercent.getAsDouble() > 0;
    waitTrack.look(nowNs / 1_000_000, wallMs, waits, progressed);
  }

  /** {@return the percent of the time that it held since the look before; empty if unknown} */
  OptionalDouble heldPercent() {
    return heldPercent;
  }

  Set<Long> processes() {
    return processes;
  }

  /**
   * Adds the percentages of the last interval, and the waits.
   *
   * @param json receives them
   * @param isCounted whether anything counts the tenant's copies
   */
  void put(JsonText json, boolean isCounted) {
    put(json, "held", heldPercent);
    put(json, "copy", isCounted ? copyPercent : OptionalDouble.empty());
    waitTrack.put(json);
  }

  static void put(JsonText json, String name, OptionalDouble value) {
    if (value.isPresent()) {
      json.put(name, tenths(value.getAsDouble()));
    } else {
      json.putNull(name);
    }
  }

  static double tenths(double value) {
    return Double.isNaN(value) ? value : Math.round(value * TENTHS) / TENTHS;
  }

  /**
   * Adds the history, the oldest look first.
   *
   * @param json receives the history
   * @param from the first look
   * @param to the look after the last one
   */
  void putHistory(JsonText json, long from, long to) {
    put(json, "held", held, from, to);
    put(json, "entitled", entitled, from, to);
  }

  /** Looks before the tenant joined are NaN, which becomes null. */
  private static void put(JsonText json, String name, double[] values, long from, long to) {
    json.array(name);
    for (long look = from; look < to; look++) {
      json.add(tenths(values[(int) (look % LOOKS)]));
    }
    json.endArray();
  }
}
