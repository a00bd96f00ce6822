package dev.vgpu.bench.cost;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.bench.report.Rounds;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * What the hook adds to a launch of an empty kernel. Three programs alternate on one core: bare,
 * under a virtual GPU without a limit, and under one with a limit that it does not reach. A second
 * bare program tells how much two equal programs differ.
 */
public final class LaunchBench implements ProcessBench {
  private static final int BLOCKS = 300;
  private static final int LAUNCHES = 512;
  private static final int LIMIT_PERCENT = 90;
  private static final double TARGET_NS = 5;
  private static final double TARGET_LIMITED_NS = 10;

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    try (PoolProcess pool = node.openPool()) {
      MemorySize quota = MemorySize.ofGibibytes(2);
      Map<String, String> free =
          pool.acquire("free", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, quota);
      Map<String, String> limited =
          pool.acquire(
              "limited", SharePolicy.FIXED_SHARE, LIMIT_PERCENT, PreemptionClass.NEARLINE, quota);
      Map<String, String> bare = Node.bare(free);
      List<String> names = List.of("bare", "bare again", "hooked", "hooked, limited");
      Rounds rounds = new Rounds(names.size());
      int generations = quick ? 1 : 5;
      for (int generation = 0; generation < generations; generation++) {
        report.progress("launch, programs " + (generation + 1) + " of " + generations);
        List<Child> programs =
            List.of(
                node.start(bare, "launch", "1").awaitReady(),
                node.start(bare, "launch", "1").awaitReady(),
                node.start(free, "launch", "1").awaitReady(),
                node.start(limited, "launch", "1").awaitReady());
        rounds.measure(programs, "run " + BLOCKS + " " + LAUNCHES, quick ? 7 : 15);
        for (Child program : programs) {
          program.kill();
        }
      }
      tell(report, names, rounds);
      graphs(node, report, List.of(bare, bare, free, limited), quick);
    }
  }

  /** The same for graphs of one empty kernel. */
  private static void graphs(
      Node node, Report report, List<Map<String, String>> places, boolean quick)
      throws InterruptedException {
    Rounds rounds = new Rounds(places.size());
    int generations = quick ? 1 : 3;
    for (int generation = 0; generation < generations; generation++) {
      report.progress("graph launch, programs " + (generation + 1) + " of " + generations);
      List<Child> programs = new ArrayList<>();
      for (Map<String, String> place : places) {
        programs.add(node.start(place, "launch", "1", "graph").awaitReady());
      }
      rounds.measure(programs, "run " + BLOCKS + " " + LAUNCHES, quick ? 7 : 15);
      for (Child program : programs) {
        program.kill();
      }
    }
    report.line("%-38s%16s%16s", "launch of a graph of an empty kernel", "ns", "added ns");
    report.line("  %-36s%16.1f%16s", "bare", rounds.median(0), "");
    report.line("  %-36s%16.1f%16.1f", "hooked", rounds.median(2), rounds.added(2));
    report.line("  %-36s%16.1f%16.1f", "hooked, limited", rounds.median(3), rounds.added(3));
    report.figure("launch_graph_bare_ns", rounds.median(0));
    report.figure("launch_graph_added_ns", rounds.added(2));
    report.figure("launch_graph_limited_added_ns", rounds.added(3));
  }

  private static void tell(Report report, List<String> names, Rounds rounds) {
    report.line(
        "%-38s%16s%16s%18s", "launch of an empty kernel", "ns", "added ns", "slow blocks %");
    for (int i = 0; i < names.size(); i++) {
      report.line(
          "  %-36s%16.1f%16.1f%18.2f",
          names.get(i), rounds.median(i), rounds.added(i), rounds.slowPercent(i));
    }
    report.line("  target: <= %.0f ns, <= %.0f ns limited", TARGET_NS, TARGET_LIMITED_NS);
    report.figure("launch_added_ns", rounds.added(2));
    report.figure("launch_limited_added_ns", rounds.added(3));
    report.figure("launch_bare_ns", rounds.median(0));
    report.figure("launch_bare_again_added_ns", rounds.added(1));
  }
}
