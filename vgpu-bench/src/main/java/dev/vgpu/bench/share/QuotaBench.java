package dev.vgpu.bench.share;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.Leftovers;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;

/**
 * Whether a quota is ever exceeded. Eight processes of eight threads churn with every kind of
 * memory and with all kinds mixed, a hundred times each; they fill the quota, and are killed. Two
 * observers: the GPU's own accounting, read continuously through NVML, and the programs' own sum of
 * what is certainly allocated.
 */
public final class QuotaBench implements ProcessBench {
  private static final int PROCESSES = 8;
  private static final int THREADS = 8;
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(4);
  private static final long KILL_EVERY_MS = 150;
  private static final List<String> KINDS =
      List.of("alloc", "async", "physical", "array", "managed", "graph", "mixed");
  private static final int RUNS = 100;
  private static final int RUNS_QUICK = 5;
  private static final long RUN_MS = 100;
  private static final String NO_ROOM = "error cuCtxCreate 2";

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    long phaseMs = quick ? 2_000 : 8_000;
    int runs = quick ? RUNS_QUICK : RUNS;
    try (PoolProcess pool = node.openPool()) {
      Map<String, String> leased =
          pool.acquire("quota", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, QUOTA);
      report.line(
          "%-38s%14s%14s%14s%14s%14s",
          "quota of " + QUOTA + ", 8 x 8",
          "over, NVML",
          "over, sum",
          "peak MiB",
          "allocs",
          "refused");
      long over = 0;
      try (Churners churners = new Churners(node, leased, "hooked")) {
        for (String kind : KINDS) {
          report.progress("quota, " + kind);
          Tally tally = new Tally();
          String order = "runs " + kind + " " + runs + " " + RUN_MS;
          long most = churners.run(order, runs * RUN_MS, false, tally);
          tally.print(report, runs + " runs of 8 x 8, " + kind);
          report.figure("quota_overshoot_bytes_of", kind, (double) most);
          over = Math.max(over, most);
        }
        over = Math.max(over, churners.phase(report, "fill", phaseMs, false));
        over = Math.max(over, churners.phase(report, "kill -9", phaseMs, true));
        report.figure("quota_errors", churners.errors);
        report.figure("quota_kills", churners.kills);
      }
      long heldMs = Leftovers.awaitNone(pool);
      report.line("  all bytes back %d ms after the last process", heldMs);
      report.figure("quota_overshoot_bytes", over);
      report.figure("quota_all_back_ms", heldMs);
      try (Churners churners = new Churners(node, Node.bare(leased), "bare")) {
        long bare = churners.phase(report, "bare, fill", phaseMs / 3, false);
        report.figure("quota_overshoot_bare_bytes", bare);
      }
      report.line("  target: 0 bytes over, always");
    }
  }

  /** The processes and their observer. */
  private static final class Churners implements AutoCloseable {
    private final Node node;
    private final Map<String, String> place;
    private final String name;
    private final Child observer;
    private final List<Child> programs = new ArrayList<>();
    private final Random random = new Random(7);
    private long contexts;
    private long errors;
    private long kills;
    private int started;

    Churners(Node node, Map<String, String> place, String name) throws InterruptedException {
      this.node = node;
      this.place = place;
      this.name = name;
      this.observer =
          node.start(Node.bare(place), "observe", Long.toString(QUOTA.bytes())).awaitReady();
      for (int i = 0; i < PROCESSES; i++) {
        programs.add(another());
      }
      for (Child program : programs) {
        program.awaitReady();
      }
      this.contexts = observer.ask("read").whole("now");
    }

    private Child another() {
      started++;
      return node.start(
          place,
          "churn",
          Long.toString(QUOTA.bytes()),
          Integer.toString(THREADS),
          node.file("witness-" + name).toString(),
          Integer.toString(started));
    }

    /** Runs an order, and reports it in a separate line; returns the bytes over the quota. */
    long phase(Report report, String what, long durationMs, boolean killing)
        throws InterruptedException {
      report.progress("quota, " + what);
      String order = what.endsWith("fill") ? "fill" : killing ? "churn mixed" : "churn";
      Tally tally = new Tally();
      long over = run(order, durationMs, killing, tally);
      tally.print(report, what);
      return over;
    }

    /** Runs an order; returns the bytes over the quota. */
    long run(String order, long durationMs, boolean killing, Tally tally)
        throws InterruptedException {
      for (Child program : programs) {
        program.ask(order);
      }
      long endNs = NanoClock.nanoTime() + durationMs * 1_000_000;
      while (killing && NanoClock.nanoTime() < endNs) {
        killOne(order);
      }
      NanoClock.sleepMillis(Math.max(0, (endNs - NanoClock.nanoTime()) / 1_000_000));
      tally.allocated = 0;
      tally.refused = 0;
      long sumPeak = 0;
      for (Child program : programs) {
        Answer answer = program.ask("stop");
        tally.allocated += answer.whole("allocated");
        tally.refused += answer.whole("refused");
        sumPeak = answer.whole("peak");
        errors += answer.whole("error") == 0 ? 0 : 1;
      }
      Answer seen = observer.ask("read");
      tally.over = Math.max(tally.over, seen.whole("over"));
      tally.peak = Math.max(tally.peak, seen.whole("peak"));
      if (killing) { // the programs' own sum keeps the memory of killed programs for ever
        tally.sumCounts = false;
      } else {
        tally.sumOver = Math.max(tally.sumOver, Math.max(0, sumPeak + contexts - QUOTA.bytes()));
      }
      return Math.max(tally.over, tally.sumOver);
    }

    private void killOne(String order) throws InterruptedException {
      NanoClock.sleepMillis(random.nextLong(KILL_EVERY_MS));
      int index = random.nextInt(programs.size());
      programs.get(index).kill();
      kills++;
      programs.set(index, replacement());
      programs.get(index).ask(order);
    }

    /**
     * Other programs may leave no room for a context. A start that is refused for that is repeated.
     */
    private Child replacement() throws InterruptedException {
      for (Child next = another(); ; next = another()) {
        String line = next.line();
        if (line.equals("ready")) {
          return next;
        }
        next.awaitEnd();
        if (!line.equals(NO_ROOM)) {
          throw new IllegalStateException("a process could not start: " + line);
        }
        NanoClock.sleepMillis(5);
      }
    }

    @Override
    public void close() {
      for (Child program : programs) {
        program.close();
      }
      observer.close();
    }
  }

  /** The results of one or several runs. The counts cover the programs' whole lives. */
  private static final class Tally {
    private long over;
    private long sumOver;
    private boolean sumCounts = true;
    private long peak;
    private long allocated;
    private long refused;

    void print(Report report, String what) {
      report.line(
          "  %-36s%14d%14s%14d%14d%14d",
          what, over, sumCounts ? Long.toString(sumOver) : "-", peak >> 20, allocated, refused);
    }
  }
}
