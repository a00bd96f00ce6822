package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.SteadyLoad;
import dev.vgpu.bench.harness.Timeline;
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
  private static final long WARM_UP_MS = 400;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    MemorySize quota = place.quota(4, 25);
    try (CheckNode node = CheckNode.open(place)) {
      long rounds = (long) node.start(CheckNode.BARE, "pace").answer().number("rounds_per_ms");
      Shares shares =
          new Shares(node, findings, quick ? 300 : 1_200, quick ? 150 : WARM_UP_MS, rounds);
      findings.line(
          "%-10s%-8s%-12s%s",
          "kernel ms", "synced", "shares", "done % of the time; lost % of alone");
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
    private final long roundsPerMs;
    private long aloneNs;
    private double worst;
    private double worstLimited;
    private double mostLost;

    Shares(CheckNode node, Findings findings, long windowMs, long warmUpMs, long roundsPerMs) {
      this.node = node;
      this.findings = findings;
      this.windowMs = windowMs;
      this.warmUpMs = warmUpMs;
      this.roundsPerMs = Math.max(1, roundsPerMs);
    }

    private void each(long us, int sync, MemorySize quota, boolean quick)
        throws InterruptedException {
      SteadyLoad.Timed bare = timed(List.of(CheckNode.BARE), us, sync);
      double alone = bare.held().get(0).percent();
      aloneNs = bare.timeline().medianKernelNs();
      tell(us, sync, "bare", bare, alone);
      tell(us, sync, "2 bare", timed(List.of(CheckNode.BARE, CheckNode.BARE), us, sync), alone);
      Map<String, String> half =
          node.lease("half", SharePolicy.FIXED_SHARE, 50, PreemptionClass.NEARLINE, quota);
      SteadyLoad.Timed limited = timed(List.of(half), us, sync);
      node.release("half");
      tell(us, sync, "50 alone", limited, 0);
      // Tells about the limit only if the program alone could have used as much.
      if (alone > 55) {
        worstLimited = Math.max(worstLimited, Math.abs(limited.held().get(0).percent() - 50));
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
      SteadyLoad.Timed timed = timed(places, us, sync);
      double sum = timed.held().stream().mapToDouble(SteadyLoad.Held::percent).sum();
      for (int i = 0; i < mix.size(); i++) {
        node.release("tenant" + i);
        double held = timed.held().get(i).percent();
        worst = Math.max(worst, Math.abs(100 * held / sum - mix.get(i)));
      }
      mostLost = Math.max(mostLost, lost(timed, alone));
      tell(
          us,
          sync,
          mix.stream().map(String::valueOf).collect(Collectors.joining("/")),
          timed,
          alone);
    }

    /** What the programs lose together, in percent of what one does alone. */
    private static double lost(SteadyLoad.Timed timed, double alone) {
      double sum = timed.held().stream().mapToDouble(SteadyLoad.Held::percent).sum();
      return alone == 0 ? 0 : 100 * (1 - sum / alone);
    }

    private void tell(long us, int sync, String what, SteadyLoad.Timed timed, double alone) {
      String words =
          timed.held().stream()
              .map(held -> String.valueOf(Findings.rounded(held.percent(), 2)))
              .collect(Collectors.joining("  "));
      String synced = sync == 0 ? "never" : "every";
      double lost = lost(timed, alone);
      findings.line("%-10s%-8s%-12s%s; %.2f", us / 1e3, synced, what, words, lost);
      ObjectNode into =
          findings.at(us + " us, synced " + (sync == 0 ? "never" : "every kernel"), what);
      ArrayNode values = into.putArray("held_percent");
      timed.held().forEach(held -> values.add(Findings.rounded(held.percent(), 3)));
      into.put("lost_percent", Findings.rounded(lost, 2));
      tell(timed.timeline(), into);
      findings.write();
    }

    /** Where the GPU's time went. The emulated GPU does not tell. */
    private void tell(Timeline timeline, ObjectNode into) {
      if (timeline.wallNs() == 0) {
        return;
      }
      long workNs = aloneNs * timeline.kernels().stream().mapToLong(Long::longValue).sum();
      double wallNs = timeline.wallNs();
      double switching = 100 * timeline.switchIdleNs() / wallNs;
      double between = 100 * timeline.idleNs() / wallNs;
      double longer = 100 * (timeline.busyNs() - workNs) / wallNs;
      double perSecond = timeline.switches() * 1e9 / wallNs;
      findings.line(
          "%30s idle %.2f %% at %.0f switches a second (each %.0f us) and %.2f %% in turns;"
              + " kernels longer than alone %.2f %%",
          "", switching, perSecond, timeline.medianSwitchIdleNs() / 1e3, between, longer);
      into.put("switches_per_second", Findings.rounded(perSecond, 1));
      into.put("idle_at_switches_percent", Findings.rounded(switching, 2));
      into.put("switch_us", Findings.rounded(timeline.medianSwitchIdleNs() / 1e3, 1));
      into.put("idle_in_turns_percent", Findings.rounded(between, 2));
      into.put("longer_percent", Findings.rounded(longer, 2));
    }

    /** Runs programs whose kernels do work together. */
    private SteadyLoad.Timed timed(List<Map<String, String>> places, long us, int sync)
        throws InterruptedException {
      SteadyLoad load = new SteadyLoad(us / 1e3, 1, sync, 0, roundsPerMs);
      List<SteadyLoad> loads = Collections.nCopies(places.size(), load);
      return SteadyLoad.timed(node.node(), places, loads, warmUpMs, windowMs);
    }
  }
}
