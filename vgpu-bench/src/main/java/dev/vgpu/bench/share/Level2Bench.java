package dev.vgpu.bench.share;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.PreemptionClass;
import java.util.Map;

/**
 * {@code bench level2}: how soon an idle online program that starts work has the GPU to itself,
 * beside an offline program with kernels of 10 ms. Measured with preemption inside kernels off and
 * on. Also how much longer than alone the online program's kernel took.
 */
public final class Level2Bench {
  private static final double TARGET_P99_US = 1_000;
  private static final long ONLINE_KERNEL_NS = 2_000_000;
  private static final long OFFLINE_KERNEL_NS = 10_000_000;

  private final Report report;
  private final int arrivals;

  /** Creates the benchmark. */
  public Level2Bench(Report report, boolean quick) {
    this.report = report;
    this.arrivals = quick ? 100 : 400;
  }

  /** Runs it, and adds to the report. */
  public void run() throws InterruptedException {
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
      Map<String, String> online = Arrival.acquire(pool, "online", PreemptionClass.ONLINE);
      Map<String, String> offline = Arrival.acquire(pool, "offline", PreemptionClass.OFFLINE);
      String shared = node.file("let-in").toString();
      try (Child flood =
              node.start(offline, "flood", Long.toString(OFFLINE_KERNEL_NS), shared).awaitReady();
          Child arriving =
              node.start(
                      online,
                      "yield",
                      Long.toString(ONLINE_KERNEL_NS),
                      Arrival.page(node, offline, "report"))
                  .awaitReady()) {
        arriving.ask("run 10"); // warms up
        arriving.answer();
        report.progress("level2, " + level2);
        Arrival.tell(
            report, level2 + "_yield", "level 2 " + level2, arriving.ask("run " + arrivals));
        Arrival.tell(report, level2 + "_extra", "  longer than alone", arriving.answer());
        if (!flood.isAlive()) {
          throw new IllegalStateException("the offline program has ended: " + node.errors());
        }
      }
    }
  }
}
