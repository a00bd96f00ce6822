package dev.vgpu.bench.cost;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * {@code bench measure}: what measuring GPU time costs programs with short kernels, and how exact
 * it is. The emulator's calls take the assumed time of a real driver's. The same program runs
 * alternately bare and under a virtual GPU.
 */
public final class MeasureBench {
  private static final String SETTINGS =
      "launch-cost=2200ns,record-cost=1200ns,query-cost=500ns,elapsed-cost=600ns";

  private static final Map<String, String> COSTS = Map.of("VGPU_EMULATOR", SETTINGS);
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(2);
  private static final int[] KERNELS_US = {2, 5, 20, 100, 500};
  private static final int LAUNCH_NS = 2_200;
  private static final int WAIT_NS = 15_000;
  private static final int GRAPH = 10;

  /** The periods of launch-bound programs; their kernels take 30 % of the period. */
  private static final int[] EAGER_PERIODS_US = {50, 130};

  private static final double EAGER_PART = 0.3;

  /**
   * A way to launch.
   *
   * @param name its name
   * @param key the key of its figures
   * @param streams the number of streams
   * @param graph the kernels in a graph; 0 for plain launches
   * @param each launches between two waits; 0 to wait for the last one only; -1 to fetch a result
   */
  private record Way(String name, String key, int streams, int graph, int each) {
    String order(double launchNs, long spanNs) {
      double waitsNs = each == 0 ? 0 : (double) WAIT_NS / Math.abs(each);
      long launches = Math.max(20, (long) (spanNs / (Math.max(launchNs, LAUNCH_NS) + waitsNs)));
      return each < 0 ? "item " + launches : "run " + each + " " + launches;
    }
  }

  private static final List<Way> WAYS =
      List.of(
          new Way("a result fetched after each", "item", 1, 0, -1),
          new Way("waited for after each", "sync_1", 1, 0, 1),
          new Way("waited for after 10", "sync_10", 1, 0, 10),
          new Way("never waited for", "never", 1, 0, 0),
          new Way("4 streams, waited for after 10", "streams_sync_10", 4, 0, 10),
          new Way("4 streams, never waited for", "streams_never", 4, 0, 0),
          new Way("graphs of 10, each waited for", "graph_sync_1", 1, GRAPH, 1),
          new Way("graphs of 10, never waited for", "graph_never", 1, GRAPH, 0));

  private final Report report;
  private final int rounds;
  private final long spanNs;

  /** Creates the benchmark. */
  public MeasureBench(Report report, boolean quick) {
    this.report = report;
    this.rounds = quick ? 5 : 11;
    this.spanNs = quick ? 20_000_000 : 50_000_000;
  }

  /** Runs it, and adds to the report. */
  public void run() throws InterruptedException {
    try (Node node = Node.open(COSTS);
        PoolProcess pool = node.openPool()) {
      Map<String, String> lease = acquire(pool, "hooked");
      for (int kernelUs : KERNELS_US) {
        report.progress("measure, kernels of " + kernelUs + " us");
        report.line(
            "%-34s%11s%11s%11s%11s%11s",
            "kernels of " + kernelUs + " us; a launch:",
            "bare us",
            "added us",
            "added %",
            "in calls us",
            "charged %");
        for (Way way : WAYS) {
          compare(node, pool, lease, way, kernelUs);
        }
      }
      report.line("  %s", SETTINGS);
      report.line("  added %%: of the kernels' time; in calls: of that, the launches'");
      report.line("  target: <= 2 %% at 5 us, 1 %% at 20 us, 0.5 %% at 100 us; fetched: <= 3 us");
    }
    for (int periodUs : EAGER_PERIODS_US) {
      eager(periodUs);
    }
  }

  private static Map<String, String> acquire(PoolProcess pool, String name)
      throws InterruptedException {
    return pool.acquire(name, SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, QUOTA);
  }

  private static double chargedNs(PoolProcess pool) throws InterruptedException {
    return pool.leases().get(0).path("gpu_ns").asDouble();
  }

  private void compare(
      Node node, PoolProcess pool, Map<String, String> lease, Way way, int kernelUs)
      throws InterruptedException {
    List<Map<String, String>> places = List.of(Node.bare(lease), lease);
    List<Child> programs = new ArrayList<>();
    for (Map<String, String> place : places) {
      List<String> arguments =
          new ArrayList<>(List.of("measure", kernelUs + "000", Integer.toString(way.streams)));
      if (way.graph > 0) {
        arguments.add(Integer.toString(way.graph));
      }
      programs.add(node.start(place, arguments.toArray(String[]::new)).awaitReady());
    }
    double launchNs = 1e3 * kernelUs * Math.max(1, way.graph);
    String order = way.order(launchNs, spanNs);
    List<List<Answer>> answers = List.of(new ArrayList<>(), new ArrayList<>());
    for (Child program : programs) {
      program.ask(order); // warms up
    }
    double before = chargedNs(pool);
    for (int round = 0; round < rounds; round++) {
      for (int i = 0; i < 2; i++) {
        int index = (i + round) % 2;
        answers.get(index).add(programs.get(index).ask(order));
      }
    }
    programs.get(1).kill(); // its charges are complete after that
    double launches = rounds * answers.get(1).get(0).number("launches");
    double charged = 100 * (chargedNs(pool) - before) / (launches * launchNs);
    programs.get(0).kill();
    double addedNs = added(answers, "median_ns");
    double inCallsNs = added(answers, "call_ns");
    report.line(
        "  %-32s%11.2f%11.2f%11.1f%11.2f%11.1f",
        way.name,
        median(answers.get(0), "median_ns") / 1e3,
        addedNs / 1e3,
        100 * addedNs / launchNs,
        inCallsNs / 1e3,
        charged);
    String part = Integer.toString(kernelUs);
    report.figure(
        "measure_" + way.key + "_bare_us", part, median(answers.get(0), "median_ns") / 1e3);
    report.figure("measure_" + way.key + "_added_us", part, addedNs / 1e3);
    report.figure("measure_" + way.key + "_added_percent", part, 100 * addedNs / launchNs);
    report.figure("measure_" + way.key + "_calls_added_us", part, inCallsNs / 1e3);
    report.figure("measure_" + way.key + "_charged_percent", part, charged);
  }

  private static double median(List<Answer> answers, String what) {
    return Report.median(answers.stream().mapToDouble(answer -> answer.number(what)).toArray());
  }

  /** The median of how much longer the second program of each pair takes than the first. */
  private static double added(List<List<Answer>> answers, String what) {
    double[] differences = new double[answers.get(0).size()];
    for (int i = 0; i < differences.length; i++) {
      differences[i] = answers.get(1).get(i).number(what) - answers.get(0).get(i).number(what);
    }
    return Report.median(differences);
  }

  /** Two programs whose host code is slower than their kernels, alone and together. */
  private void eager(int periodUs) throws InterruptedException {
    report.progress("measure, launch-bound, a kernel each " + periodUs + " us");
    try (Node node = Node.open(COSTS);
        PoolProcess pool = node.openPool()) {
      Map<String, String> first = acquire(pool, "first");
      Map<String, String> second = acquire(pool, "second");
      List<List<Double>> kept = List.of(new ArrayList<>(), new ArrayList<>(), new ArrayList<>());
      List<Double> charged = new ArrayList<>();
      for (int round = 0; round < rounds; round++) {
        Map<String, String> bare = Node.bare(first);
        double alone = launches(node, List.of(bare), periodUs);
        double before = chargedNs(pool);
        double hooked = launches(node, List.of(first), periodUs);
        charged.add(100 * (chargedNs(pool) - before) / (hooked * EAGER_PART * 1e3 * periodUs));
        kept.get(0).add(100 * hooked / alone);
        kept.get(1).add(50 * launches(node, List.of(bare, bare), periodUs) / alone);
        kept.get(2).add(50 * launches(node, List.of(first, second), periodUs) / alone);
      }
      String key = "measure_eager_" + periodUs;
      report.line(
          "%-34s%11s%11s%11s%11s",
          String.format(Locale.ROOT, "a kernel of 30 %% each %d us; kept:", periodUs),
          "alone %",
          "2 bare %",
          "2 hooked %",
          "charged %");
      report.line(
          "  %-32s%11.1f%11.1f%11.1f%11.1f",
          "of the bare program's launches",
          median(kept.get(0)),
          median(kept.get(1)),
          median(kept.get(2)),
          median(charged));
      report.figure(key + "_alone_percent", median(kept.get(0)));
      report.figure(key + "_two_bare_percent", median(kept.get(1)));
      report.figure(key + "_two_percent", median(kept.get(2)));
      report.figure(key + "_charged_percent", median(charged));
    }
  }

  private static double median(List<Double> values) {
    return Report.median(values.stream().mapToDouble(Double::doubleValue).toArray());
  }

  /** The number of launches that several programs make together in a fixed time. */
  private double launches(Node node, List<Map<String, String>> places, int periodUs)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    for (Map<String, String> place : places) {
      String kernelNs = Long.toString((long) (EAGER_PART * 1e3 * periodUs));
      programs.add(node.start(place, "measure", kernelNs, "1").awaitReady());
    }
    for (Child program : programs) {
      program.tell("eager " + periodUs + "000 " + 10 * spanNs / 1_000_000);
    }
    double launches = 0;
    for (Child program : programs) {
      launches += program.answer().number("launches");
    }
    for (Child program : programs) {
      program.kill();
    }
    return launches;
  }
}
