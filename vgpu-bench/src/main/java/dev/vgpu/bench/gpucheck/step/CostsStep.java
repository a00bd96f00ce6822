package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** What vgpu adds to a launch, to a pair of alloc and free, and to a program's start-up. */
public final class CostsStep implements Step {
  private static final int LIMIT_PERCENT = 90;
  private static final List<String> NAMES = List.of("bare", "bare again", "vgpu", "vgpu, limited");

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    try (CheckNode node = CheckNode.open(place)) {
      MemorySize quota = place.quota(4, 25);
      Map<String, String> free = node.lease("free", quota);
      Map<String, String> limited =
          node.lease(
              "limited", SharePolicy.FIXED_SHARE, LIMIT_PERCENT, PreemptionClass.NEARLINE, quota);
      List<Map<String, String>> all = List.of(CheckNode.BARE, CheckNode.BARE, free, limited);
      List<Double> launch = launches(node, findings, all, quick);
      double[] worst = work(node, findings, all.subList(0, 3), quick);
      List<Double> alloc = allocations(node, findings, all.subList(0, 3), quick);
      double start = starts(node, findings, free, quick);
      findings.summary(
          "launch %+.1f ns (limited %+.1f), kernels of 20 to 500 us at most %+.1f %% (bare again"
              + " %+.1f %%), alloc and free %+.0f ns, start %+.1f ms",
          launch.get(2), launch.get(3), worst[1], worst[0], alloc.get(2), start);
    }
  }

  private static List<Double> launches(
      CheckNode node, Findings findings, List<Map<String, String>> places, boolean quick)
      throws InterruptedException {
    // No more launches than the driver's queue holds, or a launch takes as long as a kernel.
    List<String> mode = List.of("launch", "1");
    return compare(node, findings, "launch", mode, places, "run 100 256", quick ? 3 : 15, -1);
  }

  /**
   * Runs kernels to completion, queued or one at a time. Returns what a second bare run and vgpu
   * add at most, in percent.
   */
  private static double[] work(
      CheckNode node, Findings findings, List<Map<String, String>> places, boolean quick)
      throws InterruptedException {
    double[] worst = {Double.NEGATIVE_INFINITY, Double.NEGATIVE_INFINITY};
    for (int us : quick ? new int[] {100} : new int[] {20, 100, 500}) {
      for (String waits : quick ? List.of("each") : List.of("never", "each")) {
        List<String> mode = List.of("launch", "1", "work", us + "000", waits);
        String name = "kernel of " + us + " us, waited for " + waits;
        String order = "run 4 " + Math.min(256, 32_000 / us);
        List<Double> added = compare(node, findings, name, mode, places, order, quick ? 2 : 6, -1);
        double bareNs = findings.at(name, "bare").path("ns").asDouble();
        for (int i = 0; i < worst.length; i++) {
          worst[i] = Math.max(worst[i], 100 * added.get(i + 1) / bareNs);
        }
      }
    }
    return worst;
  }

  private static List<Double> allocations(
      CheckNode node, Findings findings, List<Map<String, String>> places, boolean quick)
      throws InterruptedException {
    List<Double> added = List.of();
    for (int live : quick ? new int[] {0} : new int[] {10_000, 1_000, 0}) {
      added =
          compare(
              node,
              findings,
              "alloc",
              List.of("alloc", "1"),
              places,
              "run 50 32",
              quick ? 3 : 9,
              live);
    }
    return added;
  }

  /** Programs alternate. What a program adds is the median of its differences from the first. */
  private static List<Double> compare(
      CheckNode node,
      Findings findings,
      String what,
      List<String> mode,
      List<Map<String, String>> places,
      String order,
      int rounds,
      int live)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    for (Map<String, String> place : places) {
      programs.add(node.start(place, mode.toArray(String[]::new)).awaitReady());
    }
    List<List<Double>> ns = new ArrayList<>();
    for (Child program : programs) {
      if (live >= 0) {
        program.ask("live " + live);
      }
      program.ask(order);
      ns.add(new ArrayList<>());
    }
    for (int round = 0; round < rounds; round++) {
      for (int i = 0; i < programs.size(); i++) {
        int index = (i + round) % programs.size();
        Answer answer = programs.get(index).ask(order);
        ns.get(index).add(answer.number("median_ns"));
      }
    }
    for (Child program : programs) {
      program.kill();
    }
    String name = live < 0 ? what : what + " and free, " + live + " live";
    List<Double> added = new ArrayList<>();
    for (int i = 0; i < programs.size(); i++) {
      List<Double> differences = new ArrayList<>();
      for (int round = 0; round < rounds; round++) {
        differences.add(ns.get(i).get(round) - ns.get(0).get(round));
      }
      added.add(median(differences));
      ObjectNode into = findings.at(name, NAMES.get(i));
      into.put("ns", Findings.rounded(median(ns.get(i)), 1));
      into.put("added_ns", Findings.rounded(added.get(i), 1));
      findings.line(
          "%-36s%-16s%12.1f ns%+12.1f ns", name, NAMES.get(i), median(ns.get(i)), added.get(i));
    }
    return added;
  }

  private static double starts(
      CheckNode node, Findings findings, Map<String, String> leased, boolean quick)
      throws InterruptedException {
    List<Double> bare = new ArrayList<>();
    List<Double> held = new ArrayList<>();
    for (int i = 0; i < (quick ? 1 : 6); i++) {
      bare.add(start(node, CheckNode.BARE));
      held.add(start(node, leased));
    }
    findings.at("start").put("bare_ms", Findings.rounded(median(bare), 2));
    findings.at("start").put("vgpu_ms", Findings.rounded(median(held), 2));
    findings.line(
        "cuInit and a context: bare %.1f ms, under vgpu %.1f ms", median(bare), median(held));
    return median(held) - median(bare);
  }

  private static double start(CheckNode node, Map<String, String> environment)
      throws InterruptedException {
    Child program = node.start(environment, "init");
    Answer answer = program.answer();
    program.awaitEnd();
    return (answer.number("init_ns") + answer.number("context_ns")) / 1e6;
  }

  static double median(List<Double> values) {
    List<Double> sorted = new ArrayList<>(values);
    Collections.sort(sorted);
    return sorted.isEmpty() ? 0 : sorted.get(sorted.size() / 2);
  }
}
