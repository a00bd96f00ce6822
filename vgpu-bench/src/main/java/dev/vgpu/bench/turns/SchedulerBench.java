package dev.vgpu.bench.turns;

import dev.vgpu.bench.report.Report;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** {@code bench scheduler}: the cost of a decision of the share scheduler, by tenants. */
public final class SchedulerBench {
  private static final double TARGET_NS = 1_000;

  private SchedulerBench() {}

  /** Runs it, and adds to the report. */
  public static void run(Report report, boolean quick) throws RunnerException {
    report.progress("decisions of the share scheduler (JMH)");
    Options options =
        new OptionsBuilder()
            .include(SchedulerBenchmark.class.getSimpleName())
            .addProfiler(GCProfiler.class)
            .warmupIterations(quick ? 2 : 4)
            .warmupTime(TimeValue.milliseconds(500))
            .measurementIterations(quick ? 3 : 8)
            .measurementTime(TimeValue.milliseconds(500))
            .forks(1)
            .verbosity(VerboseMode.SILENT)
            .build();
    Map<Integer, double[]> rows = new TreeMap<>();
    for (RunResult result : new Runner(options).run()) {
      int tenants = Integer.parseInt(result.getParams().getParam("tenants"));
      boolean turn = result.getParams().getBenchmark().endsWith("turnEnds");
      double ns = result.getPrimaryResult().getStatistics().getPercentile(50);
      double[] row = rows.computeIfAbsent(tenants, key -> new double[4]);
      row[turn ? 0 : 1] = turn ? ns : ns / 2; // two decisions: one tenant comes, one goes
      row[turn ? 2 : 3] = allocated(result);
    }
    report.line(
        "%-30s%14s%14s%16s",
        "share scheduler, tenants", "turn ends ns", "arrival ns", "bytes each");
    rows.forEach(
        (tenants, row) -> {
          String part = Integer.toString(tenants);
          report.figure("scheduler_decision_ns", part, row[0]);
          report.figure("scheduler_arrival_ns", part, row[1]);
          report.figure("scheduler_decision_bytes", part, Math.max(row[2], row[3]));
          report.line(
              "  %-28d%14.0f%14.0f%16.1f", tenants, row[0], row[1], Math.max(row[2], row[3]));
        });
    report.line(
        "  target: <= %.0f ns at 16 tenants, and no faster growth than log n (x%.1f from 16 to 1024)",
        TARGET_NS, Math.log(1024) / Math.log(16));
  }

  private static double allocated(RunResult result) {
    for (Map.Entry<String, ? extends Result<?>> entry : secondary(result).entrySet()) {
      if (entry.getKey().endsWith("gc.alloc.rate.norm")) {
        return Math.round(entry.getValue().getScore() * 10) / 10.0;
      }
    }
    throw new IllegalStateException("the profiler gave no gc.alloc.rate.norm");
  }

  @SuppressWarnings({"rawtypes", "unchecked"}) // JMH's signature
  private static Map<String, ? extends Result<?>> secondary(RunResult result) {
    return (Map) result.getSecondaryResults();
  }
}
