package dev.vgpu.bench.death;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Kills the seat's holder repeatedly under load; another process takes the seat over each time. */
public final class SeatBench implements ProcessBench {
  private static final int KILLS = 20;
  private static final int QUICK_KILLS = 4;
  private static final int LEASES = 3;
  private static final long LONGEST_TAKE_OVER_NS = 10_000_000_000L;
  private static final long UNDISTURBED_MS = 5_000;

  private int failed;
  private int lost;

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    int kills = quick ? QUICK_KILLS : KILLS;
    List<PoolProcess> pools = new ArrayList<>(List.of(node.openPool()));
    try {
      // May hold the seat later, and is then killed like any holder; its virtual GPUs stay.
      PoolProcess owner = node.openPool();
      pools.add(owner);
      List<Child> programs = start(node, owner);
      NanoClock.sleepMillis(1_000);
      worstMs(programs);
      NanoClock.sleepMillis(UNDISTURBED_MS);
      double undisturbedMs = worstMs(programs);
      double worstMs = 0;
      double[] takeOverMs = new double[kills];
      for (int i = 0; i < kills; i++) {
        report.progress("seat's holder killed, " + (i + 1) + " of " + kills);
        pools.add(node.openPool()); // the standby
        worstMs(programs); // starting a JVM is itself a disturbance: discard it
        takeOverMs[i] = killHolder(node, pools);
        NanoClock.sleepMillis(300);
        worstMs = Math.max(worstMs, worstMs(programs));
        lost += LEASES - pools.get(pools.size() - 1).leases().size();
      }
      tell(report, kills, takeOverMs, worstMs, undisturbedMs);
      for (Child program : programs) {
        program.kill();
      }
    } finally {
      pools.forEach(PoolProcess::close);
    }
  }

  private static List<Child> start(Node node, PoolProcess owner) throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    MemorySize quota = MemorySize.ofGibibytes(1);
    for (int i = 0; i < LEASES; i++) {
      SharePolicy policy = i == 0 ? SharePolicy.FIXED_SHARE : SharePolicy.BURST_SHARE;
      Map<String, String> place =
          owner.acquire("seat" + i, policy, 25, PreemptionClass.NEARLINE, quota);
      programs.add(node.start(place, "load", "200000", "132", "1", "start").awaitReady());
    }
    return programs;
  }

  /** The time until another process holds the seat, in milliseconds. */
  private static double killHolder(Node node, List<PoolProcess> pools) throws InterruptedException {
    long holder = node.seatHolder();
    PoolProcess killed =
        pools.stream()
            .filter(pool -> pool.child().pid() == holder)
            .findFirst()
            .orElseThrow(
                () -> new IllegalStateException("the seat's holder is none of ours: " + holder));
    long beginNs = NanoClock.nanoTime();
    killed.child().kill();
    pools.remove(killed);
    while (node.seatHolder() == holder || node.seatHolder() == 0) {
      if (NanoClock.nanoTime() - beginNs > LONGEST_TAKE_OVER_NS) {
        throw new IllegalStateException("nobody takes the seat over");
      }
      NanoClock.sleepMillis(1);
    }
    return (NanoClock.nanoTime() - beginNs) / 1e6;
  }

  /** The longest delay of all programs since the last call. Counts programs that failed. */
  private double worstMs(List<Child> programs) throws InterruptedException {
    double worstNs = 0;
    for (Child program : programs) {
      Answer answer = program.ask("read");
      failed += answer.whole("error") == 0 ? 0 : 1;
      for (String name : List.of("worst_launch_ns", "worst_sync_ns", "open_ns")) {
        worstNs = Math.max(worstNs, answer.number(name));
      }
    }
    return worstNs / 1e6;
  }

  private void tell(
      Report report, int kills, double[] takeOverMs, double worstMs, double undisturbedMs) {
    double median = Report.median(takeOverMs);
    report.line(
        "%-38s%14s%14s%14s%14s%14s",
        "seat's holder killed under load", "kills", "failed", "lost", "worst ms", "take-over ms");
    report.line(
        "  %-36s%14d%14d%14d%14.2f%14.1f",
        String.format(Locale.ROOT, "(undisturbed: worst %.2f ms)", undisturbedMs),
        kills,
        failed,
        lost,
        worstMs,
        median);
    report.figure("seat_kills", kills);
    report.figure("seat_tenants_failed", failed);
    report.figure("seat_leases_lost", lost);
    report.figure("seat_worst_stall_ms", worstMs);
    report.figure("seat_worst_stall_undisturbed_ms", undisturbedMs);
    report.figure("seat_take_over_median_ms", median);
  }
}
