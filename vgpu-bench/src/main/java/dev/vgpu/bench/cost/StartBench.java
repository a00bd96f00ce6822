package dev.vgpu.bench.cost;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Start-up times: attaching a program's hook and creating a context, alone and a hundred at once,
 * and opening a pool in a fresh JVM.
 */
public final class StartBench implements ProcessBench {
  private static final double TARGET_ATTACH_MS = 5;
  private static final double TARGET_CONTEXT_MS = 1;
  private static final double TARGET_OPEN_MS = 50;
  private static final int CROWD = 100;

  /** The start-up times of a program. */
  private record Beginning(double initMs, double contextMs) {}

  private static double[] init(List<Beginning> all) {
    return all.stream().mapToDouble(Beginning::initMs).toArray();
  }

  private static double[] context(List<Beginning> all) {
    return all.stream().mapToDouble(Beginning::contextMs).toArray();
  }

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    report.progress("attaching");
    int programs = quick ? 10 : 50;
    int crowds = quick ? 1 : 5;
    List<Beginning> bare = new ArrayList<>();
    List<Beginning> hooked = new ArrayList<>();
    List<Beginning> bareCrowd = new ArrayList<>();
    List<Beginning> hookedCrowd = new ArrayList<>();
    try (PoolProcess pool = node.openPool()) {
      Map<String, String> leased =
          pool.acquire(
              "start",
              SharePolicy.BEST_EFFORT,
              0,
              PreemptionClass.NEARLINE,
              MemorySize.ofGibibytes(12));
      for (int i = 0; i < programs; i++) {
        bare.addAll(begin(node, Node.bare(leased), 1));
        hooked.addAll(begin(node, leased, 1));
      }
      for (int i = 0; i < crowds; i++) {
        report.progress("a hundred programs at once, " + (i + 1) + " of " + crowds);
        bareCrowd.addAll(begin(node, Node.bare(leased), CROWD));
        hookedCrowd.addAll(begin(node, leased, CROWD));
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
    tellPrograms(report, "attach", "one", bare, hooked);
    tellPrograms(report, "attach_100", "100 at once", bareCrowd, hookedCrowd);
    report.line("%-38s%14s%14s%14s", "opening a pool, medians", "ms", "", "target");
    report.line(
        "  %-36s%14.2f%14s%14.0f",
        "GpuPool.open() in a fresh JVM", Report.median(openMs), "-", TARGET_OPEN_MS);
    report.line("  %-36s%14.2f", "  ... since the JVM's start", Report.median(sinceStartMs));
    report.figure("pool_open_ms", Report.median(openMs));
    report.figure("pool_open_since_jvm_start_ms", Report.median(sinceStartMs));
  }

  private static void tellPrograms(
      Report report, String key, String what, List<Beginning> bare, List<Beginning> hooked) {
    double init = Report.median(init(hooked)) - Report.median(init(bare));
    double context = Report.median(context(hooked)) - Report.median(context(bare));
    report.line(
        "%-38s%14s%14s%14s%14s", "beginning, " + what, "added ms", "bare ms", "worst ms", "target");
    report.line(
        "  %-36s%14.3f%14.3f%14.3f%14.0f",
        "cuInit, which attaches",
        init,
        Report.median(init(bare)),
        worst(init(hooked)),
        TARGET_ATTACH_MS);
    report.line(
        "  %-36s%14.3f%14.3f%14.3f%14.0f",
        "a context",
        context,
        Report.median(context(bare)),
        worst(context(hooked)),
        TARGET_CONTEXT_MS);
    report.figure(key + "_added_ms", init);
    report.figure(key + "_bare_ms", Report.median(init(bare)));
    report.figure(key + "_worst_ms", worst(init(hooked)));
    report.figure(key + "_bare_worst_ms", worst(init(bare)));
    report.figure(key + "_context_added_ms", context);
    report.figure(key + "_context_bare_ms", Report.median(context(bare)));
    report.figure(key + "_context_worst_ms", worst(context(hooked)));
    report.figure(key + "_context_bare_worst_ms", worst(context(bare)));
  }

  private static double worst(double[] values) {
    return Arrays.stream(values).max().orElse(Double.NaN);
  }

  /** Starts many programs; all of them wait for a line, and then go on at once. */
  private static List<Beginning> begin(Node node, Map<String, String> place, int count)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      programs.add(node.start(place, "init", "wait").awaitReady());
    }
    programs.forEach(program -> program.tell("go"));
    List<Beginning> all = new ArrayList<>();
    for (Child program : programs) {
      Answer answer = program.answer();
      all.add(new Beginning(answer.number("init_ns") / 1e6, answer.number("context_ns") / 1e6));
    }
    for (Child program : programs) {
      program.tell("end");
      program.awaitEnd();
    }
    return all;
  }
}
