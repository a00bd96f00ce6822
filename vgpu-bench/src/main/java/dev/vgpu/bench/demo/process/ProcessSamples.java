package dev.vgpu.bench.demo.process;

import dev.vgpu.watch.GpuUsage;
import java.util.ArrayList;
import java.util.List;

/** Samples of one virtual GPU's usage over time. Confined to one thread. */
final class ProcessSamples {
  private static final double PERCENT = 100;

  private final List<Long> atNs = new ArrayList<>();
  private final List<Long> gpuTimeNs = new ArrayList<>();
  private long memoryPeakBytes;

  /** Takes a sample. */
  void add(long nowNs, GpuUsage usage) {
    atNs.add(nowNs);
    gpuTimeNs.add(usage.gpuTime().toNanos());
    memoryPeakBytes = Math.max(memoryPeakBytes, usage.memoryUsed().bytes());
  }

  /** {@return the most memory that any sample saw} */
  long memoryPeakBytes() {
    return memoryPeakBytes;
  }

  /**
   * {@return the part of the device's time that it held between two moments, in percent; NaN if no
   * samples surround them} Use between two samples counts as even.
   */
  double heldPercent(long fromNs, long toNs) {
    if (atNs.size() < 2 || toNs <= fromNs || fromNs > last(atNs)) {
      return Double.NaN;
    }
    return PERCENT * (usedAt(toNs) - usedAt(fromNs)) / (toNs - fromNs);
  }

  private double usedAt(long momentNs) {
    if (momentNs <= atNs.get(0)) {
      return gpuTimeNs.get(0);
    }
    for (int i = 1; i < atNs.size(); i++) {
      if (momentNs <= atNs.get(i)) {
        double part =
            (momentNs - atNs.get(i - 1)) / (double) Math.max(1, atNs.get(i) - atNs.get(i - 1));
        return gpuTimeNs.get(i - 1) + part * (gpuTimeNs.get(i) - gpuTimeNs.get(i - 1));
      }
    }
    return last(gpuTimeNs);
  }

  private static long last(List<Long> values) {
    return values.get(values.size() - 1);
  }
}
