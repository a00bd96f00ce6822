package dev.vgpu.bench.share;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.harness.SteadyLoad;
import dev.vgpu.bench.harness.SteadyLoad.Held;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Whether a share holds, whatever the grid, however often the program waits for the GPU, with plain
 * kernels or graphs. Also the longest launch, and how two processes of one tenant, and two tenants,
 * divide the GPU.
 */
public final class ShareBench implements ProcessBench {
  private static final long WARM_UP_MS = 1_000;
  private static final int LIMIT_PERCENT = 50;
  private static final double KERNEL_MS = 1;
  private static final int GRAPH_KERNELS = 4;
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(2);

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    long windowMs = quick ? 2_000 : 4_000;
    try (PoolProcess pool = node.openPool()) {
      Map<String, String> half =
          pool.acquire(
              "half", SharePolicy.FIXED_SHARE, LIMIT_PERCENT, PreemptionClass.NEARLINE, QUOTA);
      double worstMs = alone(node, half, report, windowMs, 0);
      worstMs = Math.max(worstMs, alone(node, half, report, windowMs, GRAPH_KERNELS));
      report.line("  target: 50 +- 1 %%, whatever the grid");
      report.line("%-38s%16.1f", "worst launch stall, ms", worstMs);
      report.line(
          "  target: <= 20 ms; late: what this machine kept another program waiting meanwhile");
      report.figure("share_worst_launch_ms", worstMs);
      pair(node, half, report, windowMs);
    }
    try (PoolProcess pool = node.openPool()) {
      two(node, pool, report, windowMs);
    }
  }

  /** Runs one program at 50 %; returns its longest launch, in milliseconds. */
  private static double alone(
      Node node, Map<String, String> half, Report report, long windowMs, int graph)
      throws InterruptedException {
    String what = graph == 0 ? "kernels" : "graphs of " + graph + " kernels";
    Child noise = node.start(Map.of(), "noise").awaitReady();
    report.line(
        "%-38s%12s%12s%12s%12s%12s",
        "held at 50 %, " + what, "sync", "bare %", "hooked %", "stall ms", "late ms");
    Map<String, Object> held = new LinkedHashMap<>();
    Map<String, Object> bare = new LinkedHashMap<>();
    double worstMs = 0;
    for (int grid : new int[] {132, 4_096, 30_000}) {
      Map<String, Object> heldHere = new LinkedHashMap<>();
      Map<String, Object> bareHere = new LinkedHashMap<>();
      for (int sync : new int[] {1, 0}) {
        report.progress("share, " + what + ", grid " + grid + (sync == 0 ? ", never synced" : ""));
        SteadyLoad load = new SteadyLoad(KERNEL_MS, grid, sync, graph);
        Held alone = one(node, Node.bare(half), load, windowMs);
        long ignored = noise.ask("read").whole("worst_ns");
        Held limited = one(node, half, load, windowMs);
        double lateMs = noise.ask("read").whole("worst_ns") / 1e6;
        worstMs = Math.max(worstMs, limited.worstLaunchMs());
        heldHere.put(name(sync), rounded(limited.percent()));
        bareHere.put(name(sync), rounded(alone.percent()));
        report.line(
            "  grid %-31d%12s%12.1f%12.2f%12.1f%12.1f",
            grid,
            sync == 0 ? "never" : "every 1",
            alone.percent(),
            limited.percent(),
            limited.worstLaunchMs(),
            lateMs);
      }
      held.put(Integer.toString(grid), heldHere);
      bare.put(Integer.toString(grid), bareHere);
    }
    noise.kill();
    String key = graph == 0 ? "share" : "share_graphs";
    report.figure(key + "_percent", held);
    report.figure(key + "_bare_percent", bare);
    return worstMs;
  }

  private static Held one(Node node, Map<String, String> place, SteadyLoad load, long windowMs)
      throws InterruptedException {
    return SteadyLoad.measure(node, List.of(place), List.of(load), WARM_UP_MS, windowMs).get(0);
  }

  private static String name(int sync) {
    return sync == 0 ? "sync_never" : "sync_every_1";
  }

  /** Two processes of one tenant: each should get half of the tenant's share. */
  private static void pair(Node node, Map<String, String> half, Report report, long windowMs)
      throws InterruptedException {
    SteadyLoad steady = new SteadyLoad(KERNEL_MS, 132, 0, 0);
    Map<String, List<SteadyLoad>> pairs = new LinkedHashMap<>();
    pairs.put("alike", List.of(steady, steady));
    pairs.put("one_waits", List.of(steady, new SteadyLoad(KERNEL_MS, 132, 1, 0)));
    pairs.put(
        "long_and_short", List.of(new SteadyLoad(4, 132, 0, 0), new SteadyLoad(0.25, 132, 1, 0)));
    pairs.put("graphs_and_kernels", List.of(new SteadyLoad(KERNEL_MS, 132, 0, 4), steady));
    report.line(
        "%-38s%16s%16s%16s",
        "two processes of one tenant at 50 %", "first %", "second %", "both %");
    for (Map.Entry<String, List<SteadyLoad>> entry : pairs.entrySet()) {
      report.progress("share, two processes, " + entry.getKey());
      List<Held> held =
          SteadyLoad.measure(node, List.of(half, half), entry.getValue(), WARM_UP_MS, windowMs);
      double first = held.get(0).percent();
      double second = held.get(1).percent();
      report.line("  %-36s%16.2f%16.2f%16.2f", entry.getKey(), first, second, first + second);
      report.figure("share_pair_first_percent", entry.getKey(), first);
      report.figure("share_pair_second_percent", entry.getKey(), second);
    }
    report.line("  target: 25 +- 1 %% each");
  }

  private static void two(Node node, PoolProcess pool, Report report, long windowMs)
      throws InterruptedException {
    report.progress("share, 75/25");
    Map<String, String> large =
        pool.acquire("large", SharePolicy.BURST_SHARE, 75, PreemptionClass.NEARLINE, QUOTA);
    Map<String, String> small =
        pool.acquire("small", SharePolicy.BURST_SHARE, 25, PreemptionClass.NEARLINE, QUOTA);
    for (int sync : new int[] {1, 0}) {
      SteadyLoad load = new SteadyLoad(KERNEL_MS, 132, sync, 0);
      double bare = one(node, Node.bare(large), load, windowMs).percent();
      double alone = one(node, large, load, windowMs).percent();
      List<Held> both =
          SteadyLoad.measure(
              node, List.of(large, small), List.of(load, load), WARM_UP_MS, windowMs);
      double total = both.get(0).percent() + both.get(1).percent();
      double lost = 100 * (1 - total / alone);
      String suffix = name(sync);
      report.line(
          "%-38s%16s%16s%16s%16s",
          "burst 75/25, " + (sync == 0 ? "never synced" : "synced every 1"),
          "large %",
          "small %",
          "alone %",
          "total lost %");
      report.line(
          "  %-36s%16.2f%16.2f%16.2f%16.2f",
          String.format(Locale.ROOT, "(bare, alone: %.1f %%)", bare),
          both.get(0).percent(),
          both.get(1).percent(),
          alone,
          lost);
      report.figure("share_75_25_large_percent", suffix, both.get(0).percent());
      report.figure("share_75_25_small_percent", suffix, both.get(1).percent());
      report.figure("share_75_25_lost_percent", suffix, lost);
      report.figure("share_75_25_alone_percent", suffix, alone);
      report.figure("share_75_25_bare_percent", suffix, bare);
    }
    report.line("  target: 75/25, <= 1 %% lost");
  }

  private static double rounded(double percent) {
    return Math.round(percent * 100) / 100.0;
  }
}
