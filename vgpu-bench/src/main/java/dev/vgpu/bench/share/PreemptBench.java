package dev.vgpu.bench.share;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.PreemptionClass;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/**
 * {@code bench preempt}: the time from the moment an idle online program starts work until the gate
 * of an offline program is closed. Through the express lane and through messages to the seat, with
 * the seat's JVM idle and while it collects garbage.
 */
public final class PreemptBench {
  private static final double TARGET_MEDIAN_US = 100;
  private static final double TARGET_P99_US = 1_000;
  private static final long ONLINE_KERNEL_NS = 4_000_000;
  private static final long OFFLINE_KERNEL_NS = 100_000;

  private final Report report;
  private final int arrivals;

  /** Creates the benchmark. */
  public PreemptBench(Report report, boolean quick) {
    this.report = report;
    this.arrivals = quick ? 150 : 600;
  }

  /** Runs it, and adds to the report. */
  public void run() throws InterruptedException {
    report.line(
        "%-34s%12s%12s%12s%12s", "idle -> busy to gates closed, us", "median", "p90", "p99", "max");
    measure("lane", Map.of());
    measure("messages", Map.of("VGPU_EXPRESS_LANE", "off"));
    report.line(
        "  target: <= %.0f us median, <= %.0f us p99; lane, also while the seat collects",
        TARGET_MEDIAN_US, TARGET_P99_US);
    report.line("  let in: the last launch of the offline program after the arrival; 0: none");
    report.line("  wake-up: the reference, one byte through a pipe to a thread that waits for it");
  }

  private void measure(String path, Map<String, String> settings) throws InterruptedException {
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
                      "arrive",
                      Long.toString(ONLINE_KERNEL_NS),
                      shared,
                      Arrival.page(node, offline, "grant"),
                      express(node))
                  .awaitReady()) {
        arriving.ask("run 20"); // warms up
        arriving.answer();
        arriving.answer();
        report.progress("preempt, " + path + ", the seat's JVM at rest");
        tell(path, "idle", arriving);
        report.progress("preempt, " + path + ", the seat's JVM collects garbage");
        pool.litter();
        tell(path, "collecting", arriving);
        tellPauses(path, pool.tidy());
        if (!flood.isAlive()) {
          throw new IllegalStateException("the offline program has ended: " + node.errors());
        }
      }
    }
  }

  /** The page of the GPU's express lane; {@code -} if there is none. */
  private static String express(Node node) {
    Path directory = node.runDirectory().resolve("express");
    if (!Files.isDirectory(directory)) {
      return "-";
    }
    try (Stream<Path> files = Files.list(directory)) {
      List<Path> all = files.toList();
      return all.size() == 1 ? all.get(0).toString() : "-";
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void tell(String path, String seat, Child arriving) throws InterruptedException {
    String key = path + "_" + seat + "_";
    String title = path + ", seat " + seat;
    Arrival.tell(report, key + "closed", title + ": closed", arriving.ask("run " + arrivals));
    Arrival.tell(report, key + "let_in", "  last launch let in", arriving.answer());
    Arrival.tell(report, key + "wake_up", "  wake-up of a thread", arriving.answer());
  }

  private void tellPauses(String path, Map<String, Double> figures) {
    figures.forEach((name, value) -> report.figure(path + "_garbage", name, value));
    report.line(
        "    meanwhile %.0f collections, %.0f ms in all; of them %.0f full: median %.1f, worst %s"
            + " ms",
        figures.getOrDefault("collections", 0.0),
        figures.getOrDefault("collecting_ms", 0.0),
        figures.getOrDefault("full", 0.0),
        figures.getOrDefault("full_p50_ms", 0.0),
        String.format(Locale.ROOT, "%.1f", figures.getOrDefault("full_max_ms", 0.0)));
  }
}
