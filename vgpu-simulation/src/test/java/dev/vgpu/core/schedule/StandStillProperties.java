package dev.vgpu.core.schedule;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static dev.vgpu.request.SharePolicy.BEST_EFFORT;
import static dev.vgpu.request.SharePolicy.BURST_SHARE;
import static dev.vgpu.request.SharePolicy.FIXED_SHARE;
import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.US;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.GateModel;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;

/**
 * A tenant that is entitled to a turn gets one, whatever the others leave of their turns, and
 * however often the seat stops, or dies and is taken over from.
 */
@Tag("property")
class StandStillProperties {
  private static final long RUN = 8 * S;
  private static final long LOOK = 2 * MS;

  /** Processes whose pauses look like unfinished work, and let offline work run meanwhile. */
  static final GateModel LATE =
      new GateModel(
          100 * US, 100 * US, 2 * MS, 10 * MS, 400 * US, 10 * MS, 5 * MS, true, 50 * US, true, true,
          -1);

  /** The same under a seat that rests, or is busy, and hears of them late. */
  private static final GateModel RESTING =
      new GateModel(
          30 * MS, 100 * US, 2 * MS, 10 * MS, 400 * US, 10 * MS, 5 * MS, true, 50 * US, true, true,
          -1);

  /** A tenant that has work again some time after its last work ended. */
  record Spec(
      SharePolicy policy, int percent, PreemptionClass preemptionClass, long kernelNs, long gapNs) {
    VirtualGate gate(int number) {
      return new VirtualGate("t" + number, LATE, new Pausing(kernelNs, gapNs));
    }
  }

  /** A time for which nothing is decided: the seat stops, or it dies and the next one begins. */
  record Stop(long atNs, long forNs, boolean kills) {
    Stop(long atNs, long forNs) {
      this(atNs, forNs, false);
    }

    long untilNs() {
      return atNs + forNs;
    }
  }

  @Provide
  Arbitrary<List<Spec>> specs() {
    Arbitrary<Spec> spec =
        Combinators.combine(
                Arbitraries.of(SharePolicy.values()),
                Arbitraries.integers().between(1, 40),
                Arbitraries.of(PreemptionClass.values()),
                Arbitraries.longs().between(50 * US, 4 * MS),
                Arbitraries.longs().between(0, 6 * MS))
            .as(Spec::new);
    return spec.list().ofMinSize(2).ofMaxSize(7).map(StandStillProperties::admitted);
  }

  @Provide
  Arbitrary<List<Stop>> stops() {
    return Combinators.combine(
            Arbitraries.longs().between(0, RUN),
            Arbitraries.longs().between(MS, 400 * MS),
            Arbitraries.of(true, false))
        .as(Stop::new)
        .list()
        .ofMaxSize(6);
  }

  @Provide
  Arbitrary<GateModel> models() {
    return Arbitraries.of(LATE, RESTING, LATE.strict(), RESTING.strict());
  }

  private static List<Spec> admitted(List<Spec> specs) {
    List<Spec> admitted = new ArrayList<>();
    int[] left = {100, 100};
    for (Spec spec : specs) {
      int level = spec.preemptionClass() == OFFLINE ? 1 : 0;
      boolean guaranteed = spec.policy() != BEST_EFFORT;
      int percent = guaranteed ? Math.min(spec.percent(), left[level]) : 0;
      if (!guaranteed || percent > 0) {
        left[level] -= percent;
        admitted.add(
            new Spec(
                spec.policy(), percent, spec.preemptionClass(), spec.kernelNs(), spec.gapNs()));
      }
    }
    return admitted;
  }

  /** In the turns of a tenant that pauses, the level's time passes at a twentieth of the pace. */
  @Example
  void whoIsEntitledWaitsForOneThatHardlyUsesItsTurns() {
    List<Spec> specs =
        List.of(
            new Spec(FIXED_SHARE, 4, ONLINE, 3_559_206, 14_928),
            new Spec(BEST_EFFORT, 0, OFFLINE, 3_999_999, 0),
            new Spec(FIXED_SHARE, 9, OFFLINE, 82_800, 999_137),
            new Spec(BURST_SHARE, 9, OFFLINE, 1_255_178, 1_799),
            new Spec(BEST_EFFORT, 0, ONLINE, 50_049, 1_993_000),
            new Spec(FIXED_SHARE, 5, OFFLINE, 50_097, 1_962_209),
            new Spec(FIXED_SHARE, 11, ONLINE, 52_734, 46));
    whoIsEntitledGetsATurn(specs, List.of(), 20);
  }

  /** The floor of 17 leaves the best-effort tenant 11 of its 20 hundredths. */
  @Example
  void whoTakesSurplusWaitsLongerBesideAFloor() {
    List<Spec> specs =
        List.of(
            new Spec(FIXED_SHARE, 26, ONLINE, 50_322, 1_066),
            new Spec(BEST_EFFORT, 0, NEARLINE, 2_636_011, 825_944),
            new Spec(BURST_SHARE, 21, ONLINE, 76_115, 27),
            new Spec(FIXED_SHARE, 13, ONLINE, 50_638, 1_774),
            new Spec(FIXED_SHARE, 39, OFFLINE, 50_083, 2_803),
            new Spec(BURST_SHARE, 9, OFFLINE, 50_034, 922_974));
    List<Stop> stops =
        List.of(
            new Stop(69, 1_001_842), new Stop(1_968, 1_000_044), new Stop(2_863_318, 1_000_139));
    whoIsEntitledGetsATurn(specs, stops, 17);
  }

  /**
   * A waiting tenant without debt waits for two turns of each other tenant, at most 50 ms each, and
   * until its turn is due. The latter takes as long as using up, at its rate, what another may have
   * saved up in its own turn ({@code LevelTurns}), at the pace of the slowest tenant of its level.
   */
  @Property(tries = 60)
  void whoIsEntitledGetsATurn(
      @ForAll("specs") List<Spec> specs,
      @ForAll("stops") List<Stop> stops,
      @ForAll @IntRange(max = 20) int floorPercent) {
    VirtualNode node = new VirtualNode(floorPercent);
    for (int i = 0; i < specs.size(); i++) {
      node.add(
          specs.get(i).gate(i),
          specs.get(i).policy(),
          specs.get(i).percent(),
          specs.get(i).preemptionClass());
    }
    disturb(node, stops);
    long[] waitedNs = new long[specs.size()];
    double[] boundNs = new double[specs.size()];
    for (int i = 0; i < specs.size(); i++) {
      double dueNs = 25 * MS / (rate(specs, i, floorPercent) * pace(specs, i));
      boundNs[i] = 2.0 * specs.size() * 50 * MS + dueNs;
    }
    for (long nowNs = LOOK; nowNs <= RUN; nowNs += LOOK) {
      node.runUntil(nowNs);
      long atNs = nowNs;
      boolean stopped =
          stops.stream().anyMatch(s -> atNs >= s.atNs() && atNs < s.untilNs() + 20 * MS);
      boolean takenOver = // the next seat knows of no debts: every wait begins anew
          stops.stream()
              .anyMatch(s -> s.kills() && s.untilNs() <= atNs && s.untilNs() > atNs - LOOK);
      for (int i = 0; i < specs.size(); i++) {
        boolean waits = !stopped && boundNs[i] < RUN && isEntitled(node, specs, i);
        waitedNs[i] = waits ? waitedNs[i] + LOOK : stopped && !takenOver ? waitedNs[i] : 0;
        assertThat(waitedNs[i]).as("%s of %s at %s", i, specs, nowNs).isLessThan((long) boundNs[i]);
      }
    }
    assertThat(node.stalls()).as("%s with %s", specs, stops).isEmpty();
  }

  /** The turn at 102.6 ms lasts for 0.3 ms: it is over at the next look. */
  @Example
  void aTurnBetweenTwoLooksEndsAStandstill() {
    List<Spec> specs =
        List.of(
            new Spec(FIXED_SHARE, 1, ONLINE, 50_000, 0),
            new Spec(BEST_EFFORT, 0, ONLINE, 50_000, 432_160),
            new Spec(BEST_EFFORT, 0, ONLINE, 4_000_000, 2));
    List<Stop> losses =
        List.of(
            new Stop(52, 1_026_051),
            new Stop(343, 1_010_954),
            new Stop(390, 1_010_629),
            new Stop(1_964_668, 299_606_750),
            new Stop(22_195_022, 18_613_485));
    List<Stop> clockSteps = List.of(new Stop(16, 5_064_424), new Stop(18_630, 72_758_028));
    allGatesShutIsLeftWithin100Ms(specs, List.of(), losses, clockSteps, LATE.strict(), 12, 12);
  }

  /**
   * While all gates are shut, nothing runs and somebody who may run has work, the seat gives a turn
   * within 100 ms by itself: whatever it missed, and whatever it did not hear.
   */
  @Property(tries = 60)
  void allGatesShutIsLeftWithin100Ms(
      @ForAll("specs") List<Spec> specs,
      @ForAll("stops") List<Stop> stops,
      @ForAll("stops") List<Stop> losses,
      @ForAll("stops") List<Stop> clockSteps,
      @ForAll("models") GateModel model,
      @ForAll @IntRange(min = 1, max = 20) int longerGaps,
      @ForAll @IntRange(max = 20) int floorPercent) {
    VirtualNode node = new VirtualNode(floorPercent);
    for (int i = 0; i < specs.size(); i++) {
      Spec spec = specs.get(i);
      Pausing work = new Pausing(spec.kernelNs(), longerGaps * spec.gapNs());
      VirtualGate gate = new VirtualGate("t" + i, model, work);
      node.add(gate, spec.policy(), spec.percent(), spec.preemptionClass());
    }
    disturb(node, stops);
    losses.forEach(loss -> node.at(loss.atNs(), () -> node.loseNews(loss.untilNs())));
    clockSteps.forEach(step -> node.at(step.atNs(), () -> node.stepClock(step.forNs())));
    long sinceNs = 0;
    int turns = 0;
    for (long nowNs = LOOK; nowNs <= RUN; nowNs += LOOK) {
      node.runUntil(nowNs);
      int turnsBefore = turns;
      turns = node.gates().stream().mapToInt(VirtualGate::opened).sum();
      sinceNs = standsStill(node) && turns == turnsBefore ? sinceNs : nowNs;
      assertThat(nowNs - sinceNs)
          .as("%s with %s %s %s at %s", specs, stops, losses, clockSteps, nowNs)
          .isLessThanOrEqualTo(100 * MS + LOOK);
    }
  }

  private static boolean standsStill(VirtualNode node) {
    return !node.isSeatStopped()
        && node.gates().stream().noneMatch(gate -> gate.isOpen() || gate.isRunning())
        && node.tenants().stream().anyMatch(tenant -> mayRun(node, tenant));
  }

  /** A fixed share may be used up; surplus may always be taken. */
  private static boolean mayRun(VirtualNode node, Tenant tenant) {
    return tenant.gate.hasWork() && (tenant.takesSurplus() || node.scheduler().lagNs(tenant) >= 0);
  }

  private static void disturb(VirtualNode node, List<Stop> stops) {
    for (Stop stop : stops) {
      node.at(
          stop.atNs(),
          () -> {
            if (stop.kills()) {
              node.killSeat(stop.untilNs());
            } else {
              node.stopSeat(stop.untilNs());
            }
          });
    }
  }

  /** The smallest part of its turns that a tenant of the same level uses, 0 to 1. */
  private static double pace(List<Spec> specs, int i) {
    return level(specs, i)
        .mapToDouble(spec -> (double) spec.kernelNs() / (spec.kernelNs() + spec.gapNs()))
        .min()
        .orElse(1);
  }

  /**
   * The smallest part of its level's time that a tenant gets, 0 to 1; 0 if nothing is left for it.
   * The upper level pays for the floor from its surplus.
   */
  private static double rate(List<Spec> specs, int i, int floorPercent) {
    Spec tenant = specs.get(i);
    int guaranteed = level(specs, i).mapToInt(Spec::percent).sum();
    int floor = tenant.preemptionClass() == OFFLINE ? 0 : floorPercent;
    double surplus = Math.max(0, 100 - guaranteed - floor);
    long takers = level(specs, i).filter(spec -> spec.policy() != FIXED_SHARE).count();
    boolean takes = tenant.policy() != FIXED_SHARE;
    return (tenant.percent() + (takes ? surplus / takers : 0)) / 100;
  }

  private static Stream<Spec> level(List<Spec> specs, int i) {
    boolean offline = specs.get(i).preemptionClass() == OFFLINE;
    return specs.stream().filter(spec -> (spec.preemptionClass() == OFFLINE) == offline);
  }

  private static boolean isEntitled(VirtualNode node, List<Spec> specs, int i) {
    Tenant tenant = node.tenants().get(i);
    boolean urgent = specs.get(i).preemptionClass() != OFFLINE;
    boolean alone = specs.stream().allMatch(spec -> spec.preemptionClass() == OFFLINE);
    return (urgent || alone)
        && !tenant.isActive()
        && tenant.gate.hasWork()
        && node.scheduler().lagNs(tenant) >= 0;
  }
}
