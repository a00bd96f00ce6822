package dev.vgpu.bench.turns;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** {@code bench turns}: the cost of turns in a JVM, beside a fair semaphore and a fair lock. */
public final class TurnsBench {
  private static final int PARTIES = 2;
  private static final int REPEATS = 7;
  private static final double TARGET_CALL_NS = 200;
  private static final double TARGET_HAND_OVER_US = 20;

  private final boolean quick;
  private final Consumer<String> progress;
  private final Map<String, Object> figures = new LinkedHashMap<>();
  private final StringBuilder text = new StringBuilder();

  /** Creates the benchmark. */
  public TurnsBench(boolean quick, Consumer<String> progress) {
    this.quick = quick;
    this.progress = progress;
  }

  /** {@return the figures} */
  public Map<String, Object> figures() {
    return figures;
  }

  /** {@return the figures for people} */
  public String text() {
    return text.toString();
  }

  /** Runs it, and adds to the report. */
  public void run() throws RunnerException, InterruptedException {
    uncontended();
    handOver();
    waitingThreads();
    virtualGpus();
  }

  private void uncontended() throws RunnerException {
    progress.accept("uncontended calls (JMH)");
    Options options =
        new OptionsBuilder()
            .include(UncontendedBenchmark.class.getSimpleName())
            .addProfiler(GCProfiler.class)
            .warmupIterations(quick ? 2 : 5)
            .warmupTime(TimeValue.milliseconds(500))
            .measurementIterations(quick ? 3 : 10)
            .measurementTime(TimeValue.milliseconds(500))
            .forks(quick ? 1 : 2)
            .verbosity(VerboseMode.SILENT)
            .build();
    Collection<RunResult> results = new Runner(options).run();
    line("uncontended, one thread%30s%16s", "ns a call", "bytes a call");
    for (RunResult result : results) {
      String name = result.getParams().getBenchmark().replaceAll(".*\\.", "");
      double medianNs = result.getPrimaryResult().getStatistics().getPercentile(50);
      double bytes = allocated(result);
      figures.put("uncontended_" + snake(name) + "_ns", medianNs);
      figures.put("uncontended_" + snake(name) + "_bytes", bytes);
      line("  %-28s%23.1f%16.1f", name, medianNs, bytes);
    }
    line("  target: call <= %.0f ns, 0 bytes", TARGET_CALL_NS);
  }

  private static double allocated(RunResult result) {
    for (Map.Entry<String, ? extends Result<?>> entry : secondary(result).entrySet()) {
      if (entry.getKey().endsWith("gc.alloc.rate.norm")) {
        // JMH itself allocates a few hundred bytes per iteration, which is millionths of a byte per
        // call.
        return Math.round(entry.getValue().getScore() * 10) / 10.0;
      }
    }
    throw new IllegalStateException("the profiler gave no gc.alloc.rate.norm");
  }

  @SuppressWarnings({"rawtypes", "unchecked"}) // JMH's signature
  private static Map<String, ? extends Result<?>> secondary(RunResult result) {
    return (Map) result.getSecondaryResults();
  }

  private void handOver() throws InterruptedException {
    for (int stayUs : new int[] {5, 50}) {
      handOver(stayUs);
    }
    line("  target: turns <= %.0f us median", TARGET_HAND_OVER_US);
  }

  private void handOver(int stayUs) throws InterruptedException {
    int rounds = quick ? 2_000 : 20_000;
    String what = "hand-over, work of " + stayUs + " us";
    line("%-30s%25s%16s%16s", what, "median us", "p99 us", "max us");
    for (String name : List.of("turns", "fairSemaphore", "fairLock")) {
      progress.accept(what + ", " + name);
      try (Gate gate = gate(name)) {
        Histogram latencyNs = HandOver.measure(gate, stayUs * 1_000L, rounds);
        double medianUs = latencyNs.getValueAtPercentile(50) / 1e3;
        double p99Us = latencyNs.getValueAtPercentile(99) / 1e3;
        String key = "hand_over_" + stayUs + "_us_work_" + snake(name);
        figures.put(key + "_median_us", medianUs);
        figures.put(key + "_p99_us", p99Us);
        line("  %-28s%25.1f%16.1f%16.1f", name, medianUs, p99Us, latencyNs.getMaxValue() / 1e3);
      }
    }
  }

  private static Gate gate(String name) {
    return switch (name) {
      case "turns" -> Gate.turns(PARTIES);
      case "fairSemaphore" -> Gate.fairSemaphore();
      default -> Gate.fairLock();
    };
  }

  private void waitingThreads() throws InterruptedException {
    line("threads that wait, all together%22s%16s", "1,000: us each", "10,000: us each");
    for (String name : List.of("turns", "fairSemaphore", "fairLock")) {
      progress.accept("waiting threads, " + name);
      try (Gate gate = gate(name)) {
        Crowd.waitingThreadsUs(gate, 1_000); // warms up
        double few = Crowd.waitingThreadsUs(gate, 1_000);
        double many = Crowd.waitingThreadsUs(gate, 10_000);
        figures.put("waiting_1000_" + snake(name) + "_us_each", few);
        figures.put("waiting_10000_" + snake(name) + "_us_each", many);
        line("  %-28s%23.1f%16.1f", name, few, many);
      }
    }
  }

  private void virtualGpus() throws InterruptedException {
    progress.accept("virtual GPUs");
    line("virtual GPUs open together%27s%16s%16s", "1,000: us each", "10,000: us each", "heap KiB");
    try (GpuPool pool =
        GpuPool.open(GpuPoolOptions.builder().scope(GpuPoolOptions.Scope.THIS_JVM).build())) {
      Crowd.virtualGpusUs(pool, 10_000); // warms up
      long beforeKib = Crowd.heapKib();
      double few = medianUs(pool, 1_000);
      double many = medianUs(pool, 10_000);
      long growthKib = Crowd.heapKib() - beforeKib;
      figures.put("virtual_gpus_1000_us_each", few);
      figures.put("virtual_gpus_10000_us_each", many);
      figures.put("virtual_gpus_heap_growth_kib", growthKib);
      line("  %-28s%23.1f%16.1f%+16d", "open, call, close", few, many, growthKib);
    }
    line("  (medians of %d; heap: growth over all of them, after a collection)", REPEATS);
  }

  private static double medianUs(GpuPool pool, int count) throws InterruptedException {
    double[] us = new double[REPEATS];
    for (int i = 0; i < us.length; i++) {
      us[i] = Crowd.virtualGpusUs(pool, count);
    }
    Arrays.sort(us);
    return us[REPEATS / 2];
  }

  private void line(String format, Object... values) {
    text.append(String.format(Locale.ROOT, format, values)).append('\n');
  }

  private static String snake(String camel) {
    return camel.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
  }
}
