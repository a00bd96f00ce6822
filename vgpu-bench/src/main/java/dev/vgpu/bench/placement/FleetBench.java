package dev.vgpu.bench.placement;

import dev.vgpu.bench.report.Report;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.fleet.simulation.Churn;
import dev.vgpu.fleet.simulation.DecisionTimes;
import dev.vgpu.fleet.simulation.Inflation;
import dev.vgpu.fleet.simulation.OpenbTrace;
import dev.vgpu.fleet.simulation.Outcome;
import dev.vgpu.fleet.simulation.Scale;
import dev.vgpu.fleet.simulation.SyntheticFleet;
import dev.vgpu.fleet.simulation.Trace;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * {@code bench fleet}: how much of a cluster's capacity placement wastes, and how long a decision
 * takes, compared with FGD and other policies in the same run. Times are processor time of the
 * deciding thread.
 */
public final class FleetBench {
  private static final List<String> OTHER_LISTS = List.of("gpushare40", "gpuspec10", "multigpu20");
  private static final double LOAD = 1.05;
  private static final double MICRO = 1000;

  private final Report report;
  private final boolean quick;
  private final @Nullable Path data;
  private final ThreadMXBean threads = ManagementFactory.getThreadMXBean();

  /** Creates the benchmark. */
  public FleetBench(Report report, boolean quick, String data) {
    this.report = report;
    this.quick = quick;
    this.data = data.isEmpty() ? null : Path.of(data);
  }

  /** Runs it, and adds to the report. */
  public void run() throws IOException {
    if (data == null) {
      report.line("openb is not part of vgpu: --data DIRECTORY or VGPU_OPENB names its files");
      Trace trace = SyntheticFleet.of(100, 1);
      inflation(trace, quick ? 2 : 10, List.of("best-fit", Policies.REFERENCE, Policies.OURS));
      churn(trace);
    } else {
      inflation(OpenbTrace.read(data, "default"), quick ? 2 : 10, Policies.names());
      for (String list : OTHER_LISTS) {
        inflation(
            OpenbTrace.read(data, list), quick ? 1 : 3, List.of(Policies.REFERENCE, Policies.OURS));
      }
      churn(OpenbTrace.read(data, "default"));
    }
    scale();
  }

  private static BiFunction<Fleet, Workload, PlacementPolicy> policy(String name) {
    return (fleet, workload) -> Policies.of(name, fleet, workload);
  }

  private void inflation(Trace trace, int seeds, List<String> policies) {
    report.line("requests for 130 %% of the cluster, nothing ends: %s", trace.name());
    Inflation inflation = new Inflation(trace, threads::getCurrentThreadCpuTime);
    for (String name : policies) {
      report.progress("fleet " + trace.name() + " " + name);
      rows("fill_" + trace.name(), name, seeds, seed -> inflation.run(policy(name), seed));
    }
  }

  private void churn(Trace trace) {
    report.line("requests come and go at a load of 1.05: %s", trace.name());
    Churn churn = new Churn(trace, threads::getCurrentThreadCpuTime, LOAD, quick ? 1 : 5);
    for (String name : List.of("best-fit", Policies.REFERENCE, Policies.OURS)) {
      report.progress("fleet churn " + name);
      rows("churn_" + trace.name(), name, quick ? 1 : 5, seed -> churn.run(policy(name), seed));
    }
  }

  private void rows(String key, String name, int seeds, LongFunction<Outcome> test) {
    List<Outcome> outcomes = new ArrayList<>();
    for (int seed = 1; seed <= seeds; seed++) {
      outcomes.add(test.apply(seed));
    }
    double mean = outcomes.stream().mapToDouble(Outcome::allocatedPercent).average().orElse(0);
    double squares =
        outcomes.stream().mapToDouble(o -> Math.pow(o.allocatedPercent() - mean, 2)).sum();
    double error = seeds < 2 ? 0 : Math.sqrt(squares / (seeds - 1) / seeds);
    double asked = outcomes.stream().mapToInt(Outcome::severalAsked).sum();
    double placed = outcomes.stream().mapToInt(Outcome::severalPlaced).sum();
    double several = asked == 0 ? 100 : 100 * placed / asked;
    double p99 =
        outcomes.stream().mapToLong(o -> o.decisionNs().quantile(0.99)).average().orElse(0);
    double took = outcomes.stream().mapToDouble(o -> o.decisionNs().mean()).average().orElse(0);
    report.line(
        "  %-9s allocated %.2f ± %.2f %%, of those for several GPUs placed %.2f %%;"
            + " decision mean %.0f µs, p99 %.0f µs",
        name, mean, error, several, took / MICRO, p99 / MICRO);
    report.figure(key, name + "_allocated_percent", mean);
    report.figure(key, name + "_allocated_error", error);
    report.figure(key, name + "_several_placed_percent", several);
    report.figure(key, name + "_decision_mean_us", took / MICRO);
    report.figure(key, name + "_decision_p99_us", p99 / MICRO);
    report.figure(key, "seeds", seeds);
  }

  private void scale() {
    int nodes = quick ? 2_000 : 10_000;
    Trace trace = SyntheticFleet.of(nodes, 1);
    report.line("%d GPUs on %d nodes", 10 * nodes, nodes);
    report.figure("scale", "nodes", nodes);
    for (String name : List.of("best-fit", Policies.REFERENCE, Policies.OURS)) {
      report.progress("fleet of " + nodes + " nodes " + name);
      Scale.Result result =
          new Scale(trace, threads::getCurrentThreadCpuTime).run(name, quick ? 2_000 : 20_000);
      System.gc();
      Runtime runtime = Runtime.getRuntime();
      double heap = (runtime.totalMemory() - runtime.freeMemory()) / (1024.0 * 1024);
      times(name, "filling", result.filling());
      times(name, "turning", result.turning());
      report.line(
          "  %-9s allocated %.2f %%, distinct states %d, heap after a collection %.0f MiB",
          name, result.allocatedPercent(), result.fleet().groups().size(), heap);
      report.figure("scale", name + "_allocated_percent", result.allocatedPercent());
      report.figure("scale", name + "_heap_mib", heap);
    }
  }

  private void times(String policy, String phase, DecisionTimes times) {
    report.line(
        "  %-9s %s decision mean %.0f µs, p50 %.0f, p99 %.0f, p99.9 %.0f, max %.0f",
        policy,
        phase,
        times.mean() / MICRO,
        times.quantile(0.5) / MICRO,
        times.quantile(0.99) / MICRO,
        times.quantile(0.999) / MICRO,
        times.quantile(1) / MICRO);
    String key = policy + "_" + phase;
    report.figure("scale", key + "_p50_us", times.quantile(0.5) / MICRO);
    report.figure("scale", key + "_p99_us", times.quantile(0.99) / MICRO);
    report.figure("scale", key + "_max_us", times.quantile(1) / MICRO);
  }
}
