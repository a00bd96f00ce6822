package dev.vgpu.bench;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.Map;

/** How long it takes to begin: attaching a program's hook, and opening a pool in a fresh JVM. */
final class StartBench implements ProcessBench {
  private static final double TARGET_ATTACH_MS = 5;
  private static final double TARGET_OPEN_MS = 50;

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    report.progress("attaching");
    int programs = quick ? 10 : 50;
    double[] bareMs = new double[programs];
    double[] hookedMs = new double[programs];
    try (PoolProcess pool = node.openPool()) {
      Map<String, String> leased =
          pool.acquire(
              "start",
              SharePolicy.BEST_EFFORT,
              0,
              PreemptionClass.NEARLINE,
              MemorySize.ofGibibytes(1));
      for (int i = 0; i < programs; i++) {
        bareMs[i] = initMs(node.start(Node.bare(leased), "init"));
        hookedMs[i] = initMs(node.start(leased, "init"));
      }
    }
    report.progress("opening pools");
    int pools = quick ? 5 : 15;
    double[] openMs = new double[pools];
    double[] sinceStartMs = new double[pools];
    for (int i = 0; i < pools; i++) {
      try (PoolProcess pool = node.openPool()) {
        openMs[i] = pool.openMs();
        sinceStartMs[i] = pool.sinceStartMs();
        pool.child().kill();
      }
    }
    double attach = Report.median(hookedMs) - Report.median(bareMs);
    report.line("%-38s%14s%14s%14s", "beginning, medians", "ms", "bare ms", "target ms");
    report.line(
        "  %-36s%14.2f%14.2f%14.0f",
        "attach in cuInit, added", attach, Report.median(bareMs), TARGET_ATTACH_MS);
    report.line(
        "  %-36s%14.2f%14s%14.0f",
        "GpuPool.open() in a fresh JVM", Report.median(openMs), "-", TARGET_OPEN_MS);
    report.line("  %-36s%14.2f", "  ... since the JVM's start", Report.median(sinceStartMs));
    report.figure("attach_added_ms", attach);
    report.figure("attach_bare_ms", Report.median(bareMs));
    report.figure("pool_open_ms", Report.median(openMs));
    report.figure("pool_open_since_jvm_start_ms", Report.median(sinceStartMs));
  }

  private static double initMs(Child program) throws InterruptedException {
    double ms = program.answer().number("init_ns") / 1e6;
    program.awaitEnd();
    return ms;
  }
}
