package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.SteadyLoad;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Whether shares hold, by the length of the kernels. */
public final class SharesStep implements Step {
  private static final List<List<Integer>> MIXES =
      List.of(List.of(50, 50), List.of(75, 25), List.of(30, 30, 40));
  private static final long[] LENGTHS_US = {1_000, 50, 10_000, 200};
  private static final long[] QUICK_LENGTHS_US = {1_000};
  private static final long WARM_UP_MS = 500;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    MemorySize quota = place.quota(4, 25);
    try (CheckNode node = CheckNode.open(place)) {
      Shares shares = new Shares(node, findings, quick ? 300 : 1_500, quick ? 150 : WARM_UP_MS);
      findings.line(
          "%-10s%-8s%-12s%s",
          "kernel ms", "synced", "shares", "held % of the time; lost % of alone");
      for (long us : quick ? QUICK_LENGTHS_US : LENGTHS_US) {
        // With a wait after each kernel, half of the lengths suffice.
        for (int sync : quick || us == 10_000 || us == 200 ? new int[] {0} : new int[] {0, 1}) {
          shares.each(us, sync, quota, quick);
        }
      }
      findings.summary(
          "worst of 50/50, 75/25, 30/30/40: %.2f points off, %.1f %% lost; 50 %% alone: %.2f off",
          shares.worst, shares.mostLost, shares.worstLimited);
    }
  }

  /** Runs mixes, and keeps the largest deviation. */
  private static final class Shares {
    private final CheckNode node;
    private final Findings findings;
    private final long windowMs;
    private final long warmUpMs;
    private double worst;
    private double worstLimited;
    private double mostLost;

    Shares(CheckNode node, Findings findings, long windowMs, long warmUpMs) {
      this.node = node;
      this.findings = findings;
      this.windowMs = windowMs;
      this.warmUpMs = warmUpMs;
    }

    private void each(long us, int sync, MemorySize quota, boolean quick)
        throws InterruptedException {
      double alone = held(List.of(CheckNode.BARE), us, sync).get(0);
      tell(us, sync, "bare", List.of(alone), 0);
      List<Double> two = held(List.of(CheckNode.BARE, CheckNode.BARE), us, sync);
      tell(us, sync, "2 bare", two, lost(two, alone));
      Map<String, String> half =
          node.lease("half", SharePolicy.FIXED_SHARE, 50, PreemptionClass.NEARLINE, quota);
      double limited = held(List.of(half), us, sync).get(0);
      node.release("half");
      tell(us, sync, "50 alone", List.of(limited), 0);
      // Tells about the limit only if the program alone could have used as much.
      if (alone > 55) {
        worstLimited = Math.max(worstLimited, Math.abs(limited - 50));
      }
      for (List<Integer> mix : quick ? MIXES.subList(1, 2) : MIXES) {
        mix(us, sync, mix, quota, alone);
      }
    }

    private void mix(long us, int sync, List<Integer> mix, MemorySize quota, double alone)
        throws InterruptedException {
      List<Map<String, String>> places = new ArrayList<>();
      for (int i = 0; i < mix.size(); i++) {
        places.add(
            node.lease(
                "tenant" + i,
                SharePolicy.BURST_SHARE,
                mix.get(i),
                PreemptionClass.NEARLINE,
                quota));
      }
      List<Double> held = held(places, us, sync);
      double sum = held.stream().mapToDouble(Double::doubleValue).sum();
      for (int i = 0; i < mix.size(); i++) {
        node.release("tenant" + i);
        worst = Math.max(worst, Math.abs(100 * held.get(i) / sum - mix.get(i)));
      }
      double lost = lost(held, alone);
      mostLost = Math.max(mostLost, lost);
      tell(
          us, sync, mix.stream().map(String::valueOf).collect(Collectors.joining("/")), held, lost);
    }

    /** What the programs lose together, in percent of what one does alone. */
    private static double lost(List<Double> held, double alone) {
      return 100 * (1 - held.stream().mapToDouble(Double::doubleValue).sum() / alone);
    }

    private void tell(long us, int sync, String what, List<Double> held, double lost) {
      String words =
          held.stream()
              .map(value -> String.valueOf(Findings.rounded(value, 2)))
              .collect(Collectors.joining("  "));
      findings.line(
          "%-10s%-8s%-12s%s; %.2f", us / 1e3, sync == 0 ? "never" : "every", what, words, lost);
      ObjectNode into =
          findings.at(us + " us, synced " + (sync == 0 ? "never" : "every kernel"), what);
      ArrayNode values = into.putArray("held_percent");
      held.forEach(value -> values.add(Findings.rounded(value, 3)));
      into.put("lost_percent", Findings.rounded(lost, 2));
      findings.write();
    }

    /** The part of the time in which each program's kernels ran, measured together; in percent. */
    private List<Double> held(List<Map<String, String>> places, long us, int sync)
        throws InterruptedException {
      SteadyLoad load = new SteadyLoad(us / 1e3, 1, sync, 0);
      List<SteadyLoad> loads = Collections.nCopies(places.size(), load);
      return SteadyLoad.measure(node.node(), places, loads, warmUpMs, windowMs).stream()
          .map(SteadyLoad.Held::percent)
          .toList();
    }
  }
}
