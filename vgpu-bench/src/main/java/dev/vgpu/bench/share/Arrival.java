package dev.vgpu.bench.share;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.Map;

/** An online program that arrives beside an offline one, with its figures. */
final class Arrival {
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(1);

  private Arrival() {}

  /** Acquires a virtual GPU without a share; returns the environment for programs under it. */
  static Map<String, String> acquire(PoolProcess pool, String name, PreemptionClass preemptionClass)
      throws InterruptedException {
    return pool.acquire(name, SharePolicy.BEST_EFFORT, 0, preemptionClass, QUOTA);
  }

  /** The path of a lease's file. */
  static String page(Node node, Map<String, String> lease, String name) {
    return node.runDirectory()
        .resolve("leases")
        .resolve(lease.getOrDefault("VGPU_LEASE", ""))
        .resolve(name)
        .toString();
  }

  /** Reports percentiles, as a line and as figures. */
  static void tell(Report report, String key, String title, Answer answer) {
    double[] us = new double[4];
    String[] names = {"p50", "p90", "p99", "max"};
    for (int i = 0; i < us.length; i++) {
      us[i] = answer.number(names[i] + "_ns") / 1e3;
      report.figure(key + "_us", names[i], us[i]);
    }
    report.line("  %-32s%12.1f%12.1f%12.1f%12.1f", title, us[0], us[1], us[2], us[3]);
  }
}
