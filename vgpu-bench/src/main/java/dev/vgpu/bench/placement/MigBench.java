package dev.vgpu.bench.placement;

import static java.util.Objects.requireNonNull;

import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.placement.ExhaustiveMig.Request;
import dev.vgpu.bench.report.Report;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigGpu;
import dev.vgpu.nvml.mig.plan.MigInstance;
import dev.vgpu.nvml.mig.plan.MigOccupancy;
import dev.vgpu.nvml.mig.plan.MigPlanner;
import dev.vgpu.nvml.mig.plan.MigProfile;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
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
 * <p>"Exhaustive" is the optimum on one GPU for a policy that knows how likely each request is, but
 * not which ones come. It searches every set of placements and all continuations ({@link
 * ExhaustiveMig}, which shares no code with the planner). "Clairvoyant" knows the whole sequence:
 * no policy without knowledge of the future can reach it. Both refuse nothing that fits, as the
 * planner does.
 */
public final class MigBench {
  private static final int FLEET = 8;

  /** The clairvoyant, whose search is slow, gets one sequence out of this many. */
  private static final int CLAIRVOYANT_EVERY = 20;

  /**
   * The requests of a sequence, and how long their instances stay.
   *
   * @param smaller how much more often smaller kinds are requested: the weight of a kind is its
   *     number of memory slices to the power of minus this; 0 for equal weights
   * @param stays the mean number of requests that arrive during an instance's life; 0 if it stays
   *     for ever
   * @param requests the mean number of requests of a sequence
   */
  private record Load(String name, double smaller, double stays, double requests) {
    double ends() {
      return stays == 0 ? 0 : 1 / stays;
    }

    double over() {
      return 1 / (requests - 1);
    }

    double[] weights(List<MigProfile> kinds) {
      double[] weights = new double[kinds.size()];
      double all = 0;
      for (int i = 0; i < weights.length; i++) {
        weights[i] = Math.pow(kinds.get(i).memorySlices(), -smaller);
        all += weights[i];
      }
      for (int i = 0; i < weights.length; i++) {
        weights[i] /= all;
      }
      return weights;
    }
  }

  /** The load that the planner assumes. */
  private static final Load USUAL = new Load("come and go", 0.5, 4, 20);

  private static final List<Load> LOADS =
      List.of(
          new Load("come and stay", 0.5, 0, 5),
          new Load("light", 0.5, 2, 20),
          new Load("heavy", 0.5, 8, 20),
          new Load("all alike, stay", 0, 0, 5),
          new Load("all alike, light", 0, 2, 20),
          new Load("all alike", 0, 4, 20),
          new Load("all alike, heavy", 0, 8, 20),
          new Load("mostly small", 1, 4, 20),
          new Load("mostly small, heavy", 1, 8, 20));

  private final Report report;
  private final boolean quick;
  private final int arrivals;

  /** Creates the benchmark. */
  public MigBench(Report report, boolean quick) {
    this.report = report;
    this.quick = quick;
    this.arrivals = quick ? 20_000 : 200_000;
  }

  /** Chooses a start; empty to refuse. */
  private interface Policy {
    Optional<Integer> start(MigGpu gpu, MigProfile profile);
  }

  private static final Map<String, Policy> POLICIES = policies();

  private static Map<String, Policy> policies() {
    Map<String, Policy> policies = new LinkedHashMap<>();
    policies.put("planner", MigPlanner::start);
    policies.put(
        "first-fit",
        (gpu, kind) -> gpu.geometry().legalStarts(gpu.occupancy(), kind).stream().findFirst());
    policies.put("best-fit", MigBench::bestFit);
    return policies;
  }

  /** Runs it, and adds to the report. */
  public void run() {
    MigGeometry h100 = MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 132);
    Map<String, MigGeometry> gpus = new LinkedHashMap<>();
    gpus.put("A100-40", MigGeometry.ofSeven(MemorySize.ofGibibytes(40), 98));
    gpus.put("A100-80", MigGeometry.ofSeven(MemorySize.ofGibibytes(80), 98));
    gpus.put("A100-80, driver < 525", withoutDoubleMemory(gpus.get("A100-80")));
    gpus.put("H100-80", h100);
    gpus.put("H200-141", MigGeometry.ofSeven(MemorySize.ofGibibytes(141), 132));
    gpus.put("A30-24", MigGeometry.ofFour(MemorySize.ofGibibytes(24), 56));
    heading("one GPU, come and go");
    int sequences = quick ? 2_000 : 100_000;
    gpus.forEach((name, geometry) -> oneGpu(name, geometry, USUAL, sequences));
    heading("one H100, other loads");
    for (Load load : LOADS) {
      oneGpu(load.name(), h100, load, sequences / 5);
    }
    fleet(h100);
    planTime(h100);
  }

  private static MigGeometry withoutDoubleMemory(@Nullable MigGeometry of) {
    MigGeometry geometry = requireNonNull(of);
    return new MigGeometry(
        geometry.computeSlices(),
        geometry.memorySlices(),
        geometry.profiles().stream()
            .filter(profile -> profile.computeSlices() > 1 || profile.memorySlices() == 1)
            .toList());
  }

  private static List<MigProfile> kinds(MigGeometry geometry) {
    return geometry.profiles().stream().filter(profile -> !profile.hasMedia()).toList();
  }

  // ---- one GPU

  private void heading(String what) {
    report.line("%-26s%10s%14s%14s%9s%9s", what, "accepted", "no worse than", "", "", "refused");
    report.line(
        "%-26s%10s%14s%14s%9s%9s", "", "%", "exhaustive %", "clairvoyant %", "illegal", "that fit");
  }

  /** The results of a policy. */
  private static final class Tally {
    long sequences;
    long accepted;
    long likeExhaustive;
    long shown;
    long likeClairvoyant;
    long illegal;
    long refused;

    /** Adds a sequence. The clairvoyant was not run if {@code most} is the largest integer. */
    void add(int taken, int online, int most) {
      sequences++;
      accepted += taken;
      likeExhaustive += taken >= online ? 1 : 0;
      shown += most < Integer.MAX_VALUE ? 1 : 0;
      likeClairvoyant += taken >= most ? 1 : 0;
    }
  }

  private void oneGpu(String name, MigGeometry geometry, Load load, int sequences) {
    report.progress("MIG placements: " + name);
    List<MigProfile> kinds = kinds(geometry);
    double[] weights = load.weights(kinds);
    ExhaustiveMig exhaustive =
        new ExhaustiveMig(geometry, kinds, weights, load.ends(), load.over());
    Random random = new Random(name.hashCode());
    Map<String, Tally> tallies = new LinkedHashMap<>();
    POLICIES.keySet().forEach(policy -> tallies.put(policy, new Tally()));
    Tally best = new Tally();
    Tally foreseen = new Tally();
    long asked = 0;
    long askedForeseen = 0;
    for (int i = 0; i < sequences; i++) {
      List<Request> sequence = sequence(weights, load, random);
      int online = exhaustive.accepted(sequence);
      boolean shown = i % CLAIRVOYANT_EVERY == 0;
      int most = shown ? exhaustive.clairvoyant(sequence) : Integer.MAX_VALUE;
      asked += sequence.size();
      best.add(online, online, most);
      if (shown) {
        foreseen.add(most, online, most);
        askedForeseen += sequence.size();
      }
      POLICIES.forEach(
          (policy, chooses) -> {
            Tally tally = requireNonNull(tallies.get(policy));
            tally.add(accepted(geometry, kinds, sequence, chooses, tally), online, most);
          });
    }
    tallies.put("exhaustive", best);
    report.line("%s, %,d sequences, %,d states", name, sequences, exhaustive.states());
    for (Map.Entry<String, Tally> each : tallies.entrySet()) {
      row(name, each.getKey(), each.getValue(), asked);
    }
    row(name, "clairvoyant", foreseen, askedForeseen);
  }

  private void row(String gpu, String policy, Tally tally, long asked) {
    double accepted = percent(tally.accepted, asked);
    double online = percent(tally.likeExhaustive, tally.sequences);
    double clairvoyant = percent(tally.likeClairvoyant, tally.shown);
    report.line(
        "  %-24s%10.3f%14.2f%14.2f%9d%9d",
        policy, accepted, online, clairvoyant, tally.illegal, tally.refused);
    String part = gpu + " " + policy;
    report.figure("mig_accepted_percent", part, accepted);
    report.figure("mig_no_worse_than_exhaustive_percent", part, online);
    report.figure("mig_no_worse_than_clairvoyant_percent", part, clairvoyant);
    report.figure("mig_illegal", part, (double) tally.illegal);
    report.figure("mig_refused_that_fit", part, (double) tally.refused);
  }

  private static double percent(long part, long all) {
    return 100.0 * part / all;
  }

  private static List<Request> sequence(double[] weights, Load load, Random random) {
    List<Request> sequence = new ArrayList<>();
    double now = 0;
    do {
      double at = random.nextDouble();
      int kind = 0;
      while (kind < weights.length - 1 && at >= weights[kind]) {
        at -= weights[kind++];
      }
      double stays = load.stays() == 0 ? Double.POSITIVE_INFINITY : load.stays() * wait(random);
      sequence.add(new Request(kind, now, now + stays));
      now += wait(random);
    } while (sequence.size() < ExhaustiveMig.LONGEST
        && random.nextDouble() * (1 + load.over()) < 1);
    return sequence;
  }

  private static double wait(Random random) {
    return -Math.log(1 - random.nextDouble());
  }

  private static int accepted(
      MigGeometry geometry,
      List<MigProfile> kinds,
      List<Request> sequence,
      Policy policy,
      Tally tally) {
    List<MigInstance> instances = new ArrayList<>();
    int accepted = 0;
    for (int i = 0; i < sequence.size(); i++) {
      Request request = sequence.get(i);
      instances.removeIf(each -> sequence.get(each.id()).until() <= request.at());
      MigProfile kind = kinds.get(request.kind());
      MigGpu gpu = new MigGpu(new GpuId("GPU-0"), geometry, instances);
      Optional<Integer> start = policy.start(gpu, kind);
      if (start.isPresent()) {
        MigInstance made = instance(i, kind, start.get());
        tally.illegal += isApart(kind, made, instances, geometry) ? 0 : 1;
        instances.add(made);
        accepted++;
      } else {
        for (int at : kind.starts()) {
          if (isApart(kind, instance(i, kind, at), instances, geometry)) {
            tally.refused++;
            break;
          }
        }
      }
    }
    return accepted;
  }

  private static MigInstance instance(int id, MigProfile kind, int start) {
    return new MigInstance(
        id, kind.id(), start, kind.memorySlices(), kind.computeSlices(), "", false);
  }

  /** The rules, implemented independently of the code under test. */
  private static boolean isApart(
      MigProfile kind, MigInstance made, List<MigInstance> instances, MigGeometry geometry) {
    int compute = made.computeSlices();
    int same = 1;
    for (MigInstance each : instances) {
      compute += each.computeSlices();
      same += each.profileId() == kind.id() ? 1 : 0;
      if (each.start() < made.start() + made.memorySlices()
          && made.start() < each.start() + each.memorySlices()) {
        return false;
      }
    }
    return kind.starts().contains(made.start())
        && compute <= geometry.computeSlices()
        && same <= kind.most();
  }

  /** Chooses the start that leaves the longest run of free memory slices. */
  private static Optional<Integer> bestFit(MigGpu gpu, MigProfile kind) {
    Integer best = null;
    int longest = -1;
    for (int start : gpu.geometry().legalStarts(gpu.occupancy(), kind)) {
      int run = longestRun(gpu.geometry(), gpu.occupancy().with(kind, start).memoryMask());
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

  /** Chooses a GPU and a start; null to refuse. */
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
      now += wait(random);
      double ends = now + wait(random) * load * FLEET;
      MigProfile kind = kinds.get(random.nextInt(kinds.size()));
      for (Live each : List.copyOf(live)) {
        if (each.ends() <= now) {
          live.remove(each);
          change(gpus, each.gpu(), each.instance(), false);
        }
      }
      int[] place = policy.place(gpus, kind);
      if (place != null) {
        MigInstance made = instance(i, kind, place[1]);
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
   * The first GPU with room, or the one with the fewest free memory slices; the first start there.
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
          change(gpus, place[0], instance(j, kind, place[1]), true);
        }
      }
      MigProfile wanted = kinds.get(random.nextInt(kinds.size()));
      long start = NanoClock.nanoTime();
      Optional<?> plan = MigPlanner.place(gpus, gpu -> Optional.of(wanted));
      long ns = NanoClock.nanoTime() - start;
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
