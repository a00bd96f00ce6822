package dev.vgpu.bench.fairness;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.colocation.Trainer;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.harness.ProcessorTime;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Tenants of all policies that always have work, each a separate process. Measures how far each
 * tenant's part of the GPU in any second is from its entitlement, and how much of the GPU switching
 * costs, compared with one tenant alone. Usage comes from the programs' own events, that is, from
 * the GPU's clock, not from vgpu's accounts.
 */
public final class Fairness {
  private static final long LEAST_KERNEL_NS = 200_000;
  private static final long MOST_KERNEL_NS = 2_000_000;
  private static final long WARM_UP_MS = 1_500;
  private static final long SECOND_NS = 1_000_000_000;

  /** The distance between the starts of two windows. */
  private static final long STEP_NS = 100_000_000;

  private static final MemorySize QUOTA = MemorySize.ofMebibytes(256);

  private final boolean quick;
  private final Consumer<String> progress;
  private final List<Result> results = new ArrayList<>();

  /** The result of one mix. */
  private record Result(
      Mix mix,
      double worstPoints,
      double p99Points,
      int windows,
      List<Double> heldPercent,
      List<Double> accountedPercent,
      double worstLongRunPoints,
      double worstOfWorkPoints,
      double totalPercent,
      double alonePercent,
      double seatPercent,
      double othersPercent) {
    /** How far the seat's account of a tenant is from what the tenant held. */
    double worstAccountPoints() {
      double worst = 0;
      for (int i = 0; i < heldPercent.size(); i++) {
        worst = Math.max(worst, Math.abs(accountedPercent.get(i) - heldPercent.get(i)));
      }
      return worst;
    }

    double lostPercent() {
      return 100 * (1 - totalPercent / alonePercent);
    }
  }

  /**
   * Prepares the benchmark.
   *
   * @param quick a tenth of the time
   * @param progress receives the name of each part that begins
   */
  public Fairness(boolean quick, Consumer<String> progress) {
    this.quick = quick;
    this.progress = progress;
  }

  /**
   * Runs the benchmark.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void run() throws InterruptedException {
    try (Node node = Node.open(Map.of())) {
      List<Mix> mixes = Mix.all();
      for (int i = 0; i < mixes.size(); i++) {
        progress.accept("fairness, " + mixes.get(i).name());
        try (PoolProcess pool = node.openPool()) {
          results.add(measure(node, pool, mixes.get(i), "mix" + i));
        }
      }
    }
  }

  private Result measure(Node node, PoolProcess pool, Mix mix, String name)
      throws InterruptedException {
    Map<String, String> single =
        pool.acquire(name + "single", SharePolicy.BEST_EFFORT, 0, PreemptionClass.NEARLINE, QUOTA);
    double alone = alone(node, single, name);
    pool.release(name + "single");
    List<Trainer> trainers = new ArrayList<>();
    for (int i = 0; i < mix.tenants().size(); i++) {
      Mix.Tenant tenant = mix.tenants().get(i);
      Map<String, String> place =
          pool.acquire(
              name + "t" + i, tenant.policy(), tenant.percent(), PreemptionClass.NEARLINE, QUOTA);
      trainers.add(open(node, place, name + "t" + i));
    }
    for (Trainer trainer : trainers) {
      trainer.start();
    }
    NanoClock.sleepMillis(WARM_UP_MS);
    long seat = pool.child().pid();
    List<Long> pids = trainers.stream().map(Trainer::pid).toList();
    long[] before = processors(seat, pids);
    long[] bookedBefore = bookedNs(pool, name, trainers.size());
    long fromNs = NanoClock.nanoTime();
    NanoClock.sleepMillis(lengthMs());
    long toNs = NanoClock.nanoTime();
    long[] bookedAfter = bookedNs(pool, name, trainers.size());
    long[] after = processors(seat, pids);
    // All at once: what a tenant gets while others finish no longer matters.
    for (Trainer trainer : trainers) {
      trainer.finish();
    }
    double wallNs = toNs - fromNs;
    List<Double> accounted = new ArrayList<>();
    for (int i = 0; i < trainers.size(); i++) {
      accounted.add(rounded(100 * (bookedAfter[i] - bookedBefore[i]) / wallNs));
    }
    return result(
        mix,
        trainers,
        accounted,
        fromNs,
        toNs,
        alone,
        100 * (after[0] - before[0]) / wallNs,
        100 * (after[1] - before[1]) / wallNs);
  }

  /** The usage of each tenant so far, according to the seat. */
  private static long[] bookedNs(PoolProcess pool, String name, int tenants)
      throws InterruptedException {
    long[] booked = new long[tenants];
    for (JsonNode lease : pool.leases()) {
      String id = lease.path("id").asText();
      for (int i = 0; i < tenants; i++) {
        if (id.startsWith(name + "t" + i + "-")) {
          booked[i] = lease.path("gpu_ns").asLong();
        }
      }
    }
    return booked;
  }

  private long lengthMs() {
    return quick ? 3_000 : 12_000;
  }

  private static Trainer open(Node node, Map<String, String> place, String name)
      throws InterruptedException {
    return Trainer.open(node, place, name, LEAST_KERNEL_NS, MOST_KERNEL_NS);
  }

  /** The processor time of the seat, and of everything except the seat and the programs. */
  private static long[] processors(long seat, List<Long> programs) {
    long seatNs = ProcessorTime.ofProcessNs(seat);
    long programsNs = programs.stream().mapToLong(ProcessorTime::ofProcessNs).sum();
    return new long[] {seatNs, ProcessorTime.ofMachineNs() - seatNs - programsNs};
  }

  /** The part of the time that one tenant gets without competition, in percent. */
  private double alone(Node node, Map<String, String> place, String name)
      throws InterruptedException {
    Trainer trainer = open(node, place, name + "single");
    trainer.start();
    NanoClock.sleepMillis(WARM_UP_MS / 3);
    long fromNs = NanoClock.nanoTime();
    NanoClock.sleepMillis(lengthMs() / 4);
    long toNs = NanoClock.nanoTime();
    trainer.finish();
    return 100 * trainer.workNs(fromNs, toNs) / (toNs - fromNs);
  }

  private static Result result(
      Mix mix,
      List<Trainer> trainers,
      List<Double> accounted,
      long fromNs,
      long toNs,
      double alone,
      double seatPercent,
      double othersPercent) {
    List<Double> off = new ArrayList<>();
    List<Double> held = new ArrayList<>();
    double total = 0;
    double worstLongRun = 0;
    for (int i = 0; i < trainers.size(); i++) {
      Trainer trainer = trainers.get(i);
      double entitled = mix.entitledPercent(i);
      for (long at = fromNs; at + SECOND_NS <= toNs; at += STEP_NS) {
        double percent = 100 * trainer.workNs(at, at + SECOND_NS) / SECOND_NS;
        off.add(Math.abs(percent - entitled));
      }
      double percent = 100 * trainer.workNs(fromNs, toNs) / (toNs - fromNs);
      held.add(rounded(percent));
      total += percent;
      worstLongRun = Math.max(worstLongRun, Math.abs(percent - entitled));
    }
    // Lost time is missing from every tenant's part; how the rest was divided is a separate
    // question.
    double worstOfWork = 0;
    for (int i = 0; i < trainers.size(); i++) {
      double part = 100 * trainers.get(i).workNs(fromNs, toNs) / ((toNs - fromNs) * total / 100);
      worstOfWork = Math.max(worstOfWork, Math.abs(part - mix.entitledPercent(i)));
    }
    double[] sorted = off.stream().mapToDouble(Double::doubleValue).sorted().toArray();
    return new Result(
        mix,
        sorted[sorted.length - 1],
        sorted[(int) ((sorted.length - 1) * 0.99)],
        sorted.length,
        held,
        accounted,
        worstLongRun,
        worstOfWork,
        total,
        alone,
        seatPercent,
        othersPercent);
  }

  /** {@return the figures for programs} */
  public Map<String, Object> figures() {
    Map<String, Object> mixes = new LinkedHashMap<>();
    for (Result result : results) {
      Map<String, Object> figures = new LinkedHashMap<>();
      figures.put("worst_1s_points", rounded(result.worstPoints));
      figures.put("p99_1s_points", rounded(result.p99Points));
      figures.put("windows", result.windows);
      figures.put("worst_long_run_points", rounded(result.worstLongRunPoints));
      figures.put("worst_long_run_of_work_points", rounded(result.worstOfWorkPoints));
      figures.put("total_percent", rounded(result.totalPercent));
      figures.put("alone_percent", rounded(result.alonePercent));
      figures.put("lost_percent", rounded(result.lostPercent()));
      figures.put("seat_cpu_percent", rounded(result.seatPercent));
      figures.put("others_cpu_percent", rounded(result.othersPercent));
      figures.put("entitled_percent", entitled(result.mix));
      figures.put("held_percent", result.heldPercent);
      figures.put("accounted_percent", result.accountedPercent);
      figures.put("worst_account_points", rounded(result.worstAccountPoints()));
      mixes.put(result.mix.name(), figures);
    }
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("fairness", mixes);
    all.put(
        "fairness_worst_1s_points",
        rounded(results.stream().mapToDouble(Result::worstPoints).max().orElse(0)));
    return all;
  }

  private static double[] entitled(Mix mix) {
    double[] entitled = new double[mix.tenants().size()];
    Arrays.setAll(entitled, i -> rounded(mix.entitledPercent(i)));
    return entitled;
  }

  private static double rounded(double value) {
    return Math.round(value * 1000) / 1000.0;
  }

  /** {@return the figures for people} */
  public String text() {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "%-30s%10s%9s%9s%8s%9s%8s%8s%8s%7s%8s%n",
            "held - entitled, points",
            "worst 1 s",
            "p99 1 s",
            "long run",
            "of work",
            "accounts",
            "total %",
            "alone %",
            "lost %",
            "seat %",
            "other %"));
    for (Result result : results) {
      text.append(
          String.format(
              Locale.ROOT,
              "  %-28s%10.2f%9.2f%9.3f%8.3f%9.3f%8.2f%8.2f%8.2f%7.1f%8.0f%n",
              result.mix.name(),
              result.worstPoints,
              result.p99Points,
              result.worstLongRunPoints,
              result.worstOfWorkPoints,
              result.worstAccountPoints(),
              result.totalPercent,
              result.alonePercent,
              result.lostPercent(),
              result.seatPercent,
              result.othersPercent));
    }
    text.append("  target: worst 1 s <= 1 point (kernels <= 2 ms), long run <= 0.1, lost <= 1 %\n");
    text.append(
        "  long run: held - entitled over the whole run, in points of its time; 'of work':\n");
    text.append(
        "  in points of all work that was done, so without what was lost; 'accounts': what\n");
    text.append("  the seat booked - held\n");
    return text.toString();
  }
}
