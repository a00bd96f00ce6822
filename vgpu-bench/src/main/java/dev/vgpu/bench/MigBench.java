package dev.vgpu.bench;

import static java.util.Objects.requireNonNull;

import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.nvml.mig.MigGeometry;
import dev.vgpu.nvml.mig.MigGpu;
import dev.vgpu.nvml.mig.MigInstance;
import dev.vgpu.nvml.mig.MigOccupancy;
import dev.vgpu.nvml.mig.MigPlanner;
import dev.vgpu.nvml.mig.MigProfile;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * {@code bench mig}: how many requests for MIG instances find a place.
 *
 * <p>On one GPU, sequences of requests without departures: each kind is as likely as any other, and
 * after each request there is another one with a chance of 0.8. "Exhaustive" is the best that can
 * be done without knowing what comes: of every set of placements all continuations are searched
 * ({@link ExhaustiveMig}, which shares no code with the planner). "Clairvoyant" knows the whole
 * sequence, and refuses nothing that fits: no policy that is not told the future can reach it.
 */
final class MigBench {
  private static final double ANOTHER = 0.8;
  private static final int FLEET = 8;

  private final Report report;
  private final int sequences;
  private final int arrivals;

  MigBench(Report report, boolean quick) {
    this.report = report;
    this.sequences = quick ? 10_000 : 100_000;
    this.arrivals = quick ? 20_000 : 200_000;
  }

  /** Chooses a start; null: refuses. */
  interface Policy {
    Optional<Integer> start(MigOccupancy taken, MigProfile profile);
  }

  void run() {
    oneGpu("A100", MigGeometry.ofSeven(MemorySize.ofGibibytes(40), 98));
    oneGpu("H100", MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132));
    oneGpu("H200", MigGeometry.ofSeven(MemorySize.ofGibibytes(141), 132));
    MigGeometry geometry = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);
    fleet(geometry);
    planTime(geometry);
  }

  private static List<MigProfile> kinds(MigGeometry geometry) {
    return geometry.profiles().stream().filter(profile -> !profile.hasMedia()).toList();
  }

  // ---- one GPU

  private void oneGpu(String name, MigGeometry geometry) {
    report.progress("MIG placements on one " + name);
    ExhaustiveMig exhaustive = new ExhaustiveMig(geometry, kinds(geometry), ANOTHER);
    Map<String, Policy> policies = new LinkedHashMap<>();
    policies.put("planner", (taken, kind) -> MigPlanner.start(geometry, taken, kind));
    policies.put(
        "first-fit", (taken, kind) -> geometry.legalStarts(taken, kind).stream().findFirst());
    policies.put("best-fit", (taken, kind) -> bestFit(geometry, taken, kind));
    Random random = new Random(name.hashCode());
    Map<String, long[]> counts = new LinkedHashMap<>();
    policies.keySet().forEach(policy -> counts.put(policy, new long[4]));
    long asked = 0;
    long best = 0;
    long clairvoyant = 0;
    long bestAsClairvoyant = 0;
    for (int i = 0; i < sequences; i++) {
      List<MigProfile> sequence = sequence(kinds(geometry), random);
      int online = exhaustive.accepted(sequence);
      int most = exhaustive.clairvoyant(sequence);
      asked += sequence.size();
      best += online;
      clairvoyant += most;
      bestAsClairvoyant += online >= most ? 1 : 0;
      policies.forEach(
          (policy, chooses) -> {
            long[] count = requireNonNull(counts.get(policy));
            int accepted = accepted(geometry, sequence, chooses, count);
            count[0] += accepted;
            count[1] += accepted >= online ? 1 : 0;
            count[2] += accepted >= most ? 1 : 0;
          });
    }
    report.line(
        "%-28s%12s%18s%18s%10s",
        name + ", " + sequences + " sequences",
        "accepted %",
        "no worse than",
        "no worse than",
        "illegal");
    report.line("%-28s%12s%18s%18s", "", "", "exhaustive %", "clairvoyant %");
    for (Map.Entry<String, long[]> each : counts.entrySet()) {
      long[] count = each.getValue();
      row(
          name,
          each.getKey(),
          percent(count[0], asked),
          percent(count[1], sequences),
          percent(count[2], sequences),
          count[3]);
    }
    row(name, "exhaustive", percent(best, asked), 100, percent(bestAsClairvoyant, sequences), 0);
    row(name, "clairvoyant", percent(clairvoyant, asked), 100, 100, 0);
  }

  private void row(
      String gpu, String policy, double accepted, double online, double clairvoyant, long illegal) {
    report.line("  %-26s%12.2f%18.3f%18.2f%10d", policy, accepted, online, clairvoyant, illegal);
    String part = gpu + " " + policy;
    report.figure("mig_accepted_percent", part, accepted);
    report.figure("mig_no_worse_than_exhaustive_percent", part, online);
    report.figure("mig_no_worse_than_clairvoyant_percent", part, clairvoyant);
    report.figure("mig_illegal", part, illegal);
  }

  private static double percent(long part, long all) {
    return 100.0 * part / all;
  }

  private static List<MigProfile> sequence(List<MigProfile> kinds, Random random) {
    List<MigProfile> sequence = new ArrayList<>();
    do {
      sequence.add(kinds.get(random.nextInt(kinds.size())));
    } while (random.nextDouble() < ANOTHER);
    return sequence;
  }

  private static int accepted(
      MigGeometry geometry, List<MigProfile> sequence, Policy policy, long[] count) {
    MigOccupancy taken = MigOccupancy.NONE;
    int accepted = 0;
    for (MigProfile kind : sequence) {
      Optional<Integer> start = policy.start(taken, kind);
      if (start.isPresent()) {
        count[3] += geometry.isLegal(taken, kind, start.get()) ? 0 : 1;
        taken = taken.with(kind, start.get());
        accepted++;
      }
    }
    return accepted;
  }

  /** Where the longest free run of memory slices stays longest. */
  private static Optional<Integer> bestFit(
      MigGeometry geometry, MigOccupancy taken, MigProfile kind) {
    Integer best = null;
    int longest = -1;
    for (int start : geometry.legalStarts(taken, kind)) {
      int run = longestRun(geometry, taken.with(kind, start).memoryMask());
      if (run > longest) {
        longest = run;
        best = start;
      }
    }
    return Optional.ofNullable(best);
  }

  private static int longestRun(MigGeometry geometry, int mask) {
    int longest = 0;
    int run = 0;
    for (int slice = 0; slice < geometry.memorySlices(); slice++) {
      run = (mask >> slice & 1) == 0 ? run + 1 : 0;
      longest = Math.max(longest, run);
    }
    return longest;
  }

  // ---- eight GPUs, with departures

  private record Live(double ends, int gpu, MigInstance instance) {}

  /** Chooses a GPU and a start; null: refuses. */
  private interface FleetPolicy {
    int @Nullable [] place(List<MigGpu> gpus, MigProfile kind);
  }

  private void fleet(MigGeometry geometry) {
    report.progress("MIG placements on " + FLEET + " GPUs, with departures");
    Map<String, FleetPolicy> policies = new LinkedHashMap<>();
    policies.put("planner", MigBench::planned);
    policies.put("first-fit", (gpus, kind) -> fitting(gpus, kind, false));
    policies.put("best-fit", (gpus, kind) -> fitting(gpus, kind, true));
    report.line("%-28s%12s%12s%12s", FLEET + " GPUs, accepted % at load", "1", "2", "3");
    policies.forEach(
        (name, policy) -> {
          double[] accepted = new double[3];
          for (int load = 1; load <= 3; load++) {
            accepted[load - 1] = accepted(geometry, policy, load);
            report.figure("mig_fleet_accepted_percent", name + " " + load, accepted[load - 1]);
          }
          report.line("  %-26s%12.2f%12.2f%12.2f", name, accepted[0], accepted[1], accepted[2]);
        });
    report.line("  load: instances that are wanted at once on average, for each GPU");
  }

  private double accepted(MigGeometry geometry, FleetPolicy policy, int load) {
    Random random = new Random(load);
    List<MigProfile> kinds = kinds(geometry);
    List<MigGpu> gpus = new ArrayList<>();
    for (int i = 0; i < FLEET; i++) {
      gpus.add(new MigGpu(new GpuId("GPU-" + i), geometry, List.of()));
    }
    List<Live> live = new ArrayList<>();
    double now = 0;
    long accepted = 0;
    for (int i = 0; i < arrivals; i++) {
      now -= Math.log(1 - random.nextDouble());
      double ends = now - Math.log(1 - random.nextDouble()) * load * FLEET;
      MigProfile kind = kinds.get(random.nextInt(kinds.size()));
      for (Live each : List.copyOf(live)) {
        if (each.ends() <= now) {
          live.remove(each);
          change(gpus, each.gpu(), each.instance(), false);
        }
      }
      int[] place = policy.place(gpus, kind);
      if (place != null) {
        MigInstance made =
            new MigInstance(
                i, kind.id(), place[1], kind.memorySlices(), kind.computeSlices(), "", false);
        change(gpus, place[0], made, true);
        live.add(new Live(ends, place[0], made));
        accepted++;
      }
    }
    return percent(accepted, arrivals);
  }

  private static void change(List<MigGpu> gpus, int at, MigInstance instance, boolean add) {
    MigGpu gpu = gpus.get(at);
    List<MigInstance> instances = new ArrayList<>(gpu.instances());
    boolean changed = add ? instances.add(instance) : instances.remove(instance);
    gpus.set(at, changed ? new MigGpu(gpu.id(), gpu.geometry(), instances) : gpu);
  }

  private static int @Nullable [] planned(List<MigGpu> gpus, MigProfile kind) {
    return MigPlanner.place(gpus, gpu -> Optional.of(kind))
        .map(
            plan ->
                new int[] {
                  Integer.parseInt(plan.chosen().gpu().value().substring("GPU-".length())),
                  plan.chosen().start()
                })
        .orElse(null);
  }

  /**
   * The first GPU that has room, or the one with the fewest free memory slices; the first start.
   */
  private static int @Nullable [] fitting(List<MigGpu> gpus, MigProfile kind, boolean tightest) {
    int[] best = null;
    int least = Integer.MAX_VALUE;
    for (int i = 0; i < gpus.size(); i++) {
      MigGeometry geometry = gpus.get(i).geometry();
      MigOccupancy taken = gpus.get(i).occupancy();
      List<Integer> starts = geometry.legalStarts(taken, kind);
      int free = tightest ? geometry.memorySlices() - Integer.bitCount(taken.memoryMask()) : i;
      if (!starts.isEmpty() && free < least) {
        least = free;
        best = new int[] {i, starts.get(0)};
      }
    }
    return best;
  }

  // ---- how long a plan takes

  private void planTime(MigGeometry geometry) {
    report.progress("how long a plan for " + FLEET + " GPUs takes");
    Random random = new Random(7);
    List<MigProfile> kinds = kinds(geometry);
    int plans = 20_000;
    double[] micros = new double[plans];
    int found = 0;
    for (int i = -plans; i < plans; i++) {
      List<MigGpu> gpus = new ArrayList<>();
      for (int gpu = 0; gpu < FLEET; gpu++) {
        gpus.add(new MigGpu(new GpuId("GPU-" + gpu), geometry, List.of()));
      }
      for (int j = random.nextInt(20); j > 0; j--) {
        MigProfile kind = kinds.get(random.nextInt(5));
        int[] place = planned(gpus, kind);
        if (place != null) {
          change(
              gpus,
              place[0],
              new MigInstance(
                  j, kind.id(), place[1], kind.memorySlices(), kind.computeSlices(), "", false),
              true);
        }
      }
      MigProfile wanted = kinds.get(random.nextInt(kinds.size()));
      long start = System.nanoTime();
      Optional<?> plan = MigPlanner.place(gpus, gpu -> Optional.of(wanted));
      long ns = System.nanoTime() - start;
      if (i >= 0) {
        micros[i] = ns / 1e3;
        found += plan.isPresent() ? 1 : 0;
      }
    }
    Arrays.sort(micros);
    double median = micros[plans / 2];
    double high = micros[plans - plans / 100];
    report.figure("mig_plan_found_percent", percent(found, plans));
    report.figure("mig_plan_us_p50", median);
    report.figure("mig_plan_us_p99", high);
    report.line(
        "%-28sp50 %.1f us, p99 %.1f us; target: <= 1,000 us", "a plan for 8 GPUs", median, high);
  }
}
