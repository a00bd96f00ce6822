package dev.vgpu.bench;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Whether a share is held, whatever the grid and however often the program waits for the GPU. */
final class ShareBench implements ProcessBench {
  private static final int LIMIT_PERCENT = 50;
  private static final double KERNEL_MS = 1;
  private static final long WARM_UP_MS = 1_000;
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(2);

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    long windowMs = quick ? 2_000 : 5_000;
    try (PoolProcess pool = node.openPool()) {
      alone(node, pool, report, windowMs);
    }
    try (PoolProcess pool = node.openPool()) {
      two(node, pool, report, windowMs);
    }
  }

  private static void alone(Node node, PoolProcess pool, Report report, long windowMs)
      throws InterruptedException {
    Map<String, String> leased =
        pool.acquire(
            "half", SharePolicy.FIXED_SHARE, LIMIT_PERCENT, PreemptionClass.NEARLINE, QUOTA);
    report.line("%-38s%16s%16s%16s", "GPU time held, fixed at 50 %", "sync", "bare %", "hooked %");
    Map<String, Object> held = new LinkedHashMap<>();
    Map<String, Object> bare = new LinkedHashMap<>();
    for (int grid : new int[] {132, 4_096, 30_000}) {
      Map<String, Object> heldHere = new LinkedHashMap<>();
      Map<String, Object> bareHere = new LinkedHashMap<>();
      for (int sync : new int[] {1, 0}) {
        report.progress("share, grid " + grid + (sync == 0 ? ", never synced" : ", synced"));
        double alone = percents(node, List.of(Node.bare(leased)), grid, sync, windowMs).get(0);
        double limited = percents(node, List.of(leased), grid, sync, windowMs).get(0);
        heldHere.put(sync == 0 ? "sync_never" : "sync_every_1", rounded(limited));
        bareHere.put(sync == 0 ? "sync_never" : "sync_every_1", rounded(alone));
        report.line(
            "  grid %-31d%16s%16.1f%16.2f", grid, sync == 0 ? "never" : "every 1", alone, limited);
      }
      held.put(Integer.toString(grid), heldHere);
      bare.put(Integer.toString(grid), bareHere);
    }
    report.line("  target: 50 +- 1 %%, whatever the grid");
    report.figure("share_percent", held);
    report.figure("share_bare_percent", bare);
  }

  private static void two(Node node, PoolProcess pool, Report report, long windowMs)
      throws InterruptedException {
    report.progress("share, 75/25");
    Map<String, String> large =
        pool.acquire("large", SharePolicy.BURST_SHARE, 75, PreemptionClass.NEARLINE, QUOTA);
    Map<String, String> small =
        pool.acquire("small", SharePolicy.BURST_SHARE, 25, PreemptionClass.NEARLINE, QUOTA);
    for (int sync : new int[] {1, 0}) {
      double bare = percents(node, List.of(Node.bare(large)), 132, sync, windowMs).get(0);
      double alone = percents(node, List.of(large), 132, sync, windowMs).get(0);
      List<Double> both = percents(node, List.of(large, small), 132, sync, windowMs);
      double total = both.get(0) + both.get(1);
      double lost = 100 * (1 - total / alone);
      String suffix = sync == 0 ? "sync_never" : "sync_every_1";
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
          both.get(0),
          both.get(1),
          alone,
          lost);
      report.figure("share_75_25_large_percent", suffix, both.get(0));
      report.figure("share_75_25_small_percent", suffix, both.get(1));
      report.figure("share_75_25_lost_percent", suffix, lost);
      report.figure("share_75_25_alone_percent", suffix, alone);
      report.figure("share_75_25_bare_percent", suffix, bare);
    }
    report.line("  target: 75/25, <= 1 %% lost");
  }

  /** How much of the time kernels of each program ran, all at once, after they have warmed up. */
  private static List<Double> percents(
      Node node, List<Map<String, String>> places, int grid, int sync, long windowMs)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    for (Map<String, String> place : places) {
      programs.add(
          node.start(
                  place,
                  "load",
                  Long.toString((long) (KERNEL_MS * 1e6)),
                  Integer.toString(grid),
                  Integer.toString(sync))
              .awaitReady());
    }
    for (Child program : programs) {
      program.ask("start");
    }
    NanoClock.sleepMillis(WARM_UP_MS);
    List<Answer> before = readings(programs);
    NanoClock.sleepMillis(windowMs);
    List<Answer> after = readings(programs);
    List<Double> percents = new ArrayList<>();
    for (int i = 0; i < programs.size(); i++) {
      double kernels = after.get(i).number("kernels") - before.get(i).number("kernels");
      double wallMs = (after.get(i).number("now_ns") - before.get(i).number("now_ns")) / 1e6;
      percents.add(100 * kernels * KERNEL_MS / wallMs);
      programs.get(i).kill();
    }
    return percents;
  }

  private static List<Answer> readings(List<Child> programs) throws InterruptedException {
    List<Answer> answers = new ArrayList<>();
    for (Child program : programs) {
      Answer answer = program.ask("read");
      if (answer.whole("error") != 0) {
        throw new IllegalStateException("a program failed: " + answer.line());
      }
      answers.add(answer);
    }
    return answers;
  }

  private static double rounded(double percent) {
    return Math.round(percent * 100) / 100.0;
  }
}
