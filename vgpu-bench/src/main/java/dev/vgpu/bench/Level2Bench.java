package dev.vgpu.bench;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.Map;

/**
 * {@code bench level2}: from the moment that an idle online program begins to the moment that
 * nothing of an offline one with kernels of 10 ms runs any more, with preemption inside kernels off
 * and on; and how much longer than alone the online program's kernel took.
 */
final class Level2Bench {
  private static final double TARGET_P99_US = 1_000;
  private static final long ONLINE_KERNEL_NS = 2_000_000;
  private static final long OFFLINE_KERNEL_NS = 10_000_000;
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(1);

  private final Report report;
  private final int arrivals;

  Level2Bench(Report report, boolean quick) {
    this.report = report;
    this.arrivals = quick ? 100 : 400;
  }

  void run() throws InterruptedException {
    report.line(
        "%-34s%12s%12s%12s%12s", "begin to the GPU yielded, us", "median", "p90", "p99", "max");
    measure("off", Map.of("VGPU_LEVEL2", "off"));
    measure("on", Map.of());
    report.line("  target: <= %.0f us p99, on", TARGET_P99_US);
    report.line("  longer than alone: what the online kernel of 2 ms took beyond that");
  }

  private void measure(String level2, Map<String, String> settings) throws InterruptedException {
    try (Node node = Node.open(settings);
        PoolProcess pool = node.openPool()) {
      Map<String, String> online = acquire(pool, "online", PreemptionClass.ONLINE);
      Map<String, String> offline = acquire(pool, "offline", PreemptionClass.OFFLINE);
      String shared = node.file("let-in").toString();
      try (Child flood =
              node.start(offline, "flood", Long.toString(OFFLINE_KERNEL_NS), shared).awaitReady();
          Child arriving =
              node.start(
                      online, "yield", Long.toString(ONLINE_KERNEL_NS), reportPage(node, offline))
                  .awaitReady()) {
        arriving.ask("run 10"); // warms up
        arriving.answer();
        report.progress("level2, " + level2);
        tell(level2 + "_yield", "level 2 " + level2, arriving.ask("run " + arrivals));
        tell(level2 + "_extra", "  longer than alone", arriving.answer());
        if (!flood.isAlive()) {
          throw new IllegalStateException("the offline program has ended: " + node.errors());
        }
      }
    }
  }

  private static Map<String, String> acquire(
      PoolProcess pool, String name, PreemptionClass preemptionClass) throws InterruptedException {
    return pool.acquire(name, SharePolicy.BEST_EFFORT, 0, preemptionClass, QUOTA);
  }

  private static String reportPage(Node node, Map<String, String> lease) {
    return node.runDirectory()
        .resolve("leases")
        .resolve(lease.getOrDefault("VGPU_LEASE", ""))
        .resolve("report")
        .toString();
  }

  private void tell(String key, String title, Answer answer) {
    double[] us = new double[4];
    String[] names = {"p50", "p90", "p99", "max"};
    for (int i = 0; i < us.length; i++) {
      us[i] = answer.number(names[i] + "_ns") / 1e3;
      report.figure(key + "_us", names[i], us[i]);
    }
    report.line("  %-32s%12.1f%12.1f%12.1f%12.1f", title, us[0], us[1], us[2], us[3]);
  }
}
