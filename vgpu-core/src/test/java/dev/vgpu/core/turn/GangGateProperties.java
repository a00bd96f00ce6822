package dev.vgpu.core.turn;

import static dev.vgpu.core.turn.GangNode.MS;
import static dev.vgpu.core.turn.GangNode.S;
import static dev.vgpu.core.turn.GangNode.TURN;
import static dev.vgpu.core.turn.GangNode.US;
import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static dev.vgpu.request.SharePolicy.BEST_EFFORT;
import static dev.vgpu.request.SharePolicy.FIXED_SHARE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.core.schedule.TurnStepper;
import dev.vgpu.core.turn.GangNode.Worker;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
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
 * Tenants of several GPUs beside tenants of one. Turns are on all GPUs or on none, which {@link
 * GangNode} checks after every step, and no tenant waits forever.
 */
@Tag("property")
class GangGateProperties {
  private static final long RUN = 4 * S;

  /** A tenant of one or more GPUs that always has calls of one length, or brings them in bursts. */
  record Spec(
      Set<Integer> gpus,
      SharePolicy policy,
      int percent,
      PreemptionClass cls,
      long callNs,
      boolean bursty) {}

  /** Tenants whose guaranteed shares fit on each GPU, as admission ensures. */
  record Mix(int gpus, List<Spec> specs) {}

  @Provide
  Arbitrary<Mix> mixes() {
    return Arbitraries.integers()
        .between(2, 4)
        .flatMap(
            gpus -> {
              Arbitrary<Spec> spec =
                  Combinators.combine(
                          Arbitraries.integers().between(0, gpus - 1).set().ofMinSize(1),
                          Arbitraries.of(SharePolicy.values()),
                          Arbitraries.integers().between(5, 50),
                          Arbitraries.of(PreemptionClass.values()),
                          Arbitraries.longs().between(200 * US, 8 * MS),
                          Arbitraries.of(true, false))
                      .as(
                          (on, policy, percent, cls, callNs, bursty) ->
                              new Spec(new TreeSet<>(on), policy, percent, cls, callNs, bursty));
              return spec.list().ofMinSize(2).ofMaxSize(7).map(specs -> admitted(gpus, specs));
            });
  }

  private static Mix admitted(int gpus, List<Spec> specs) {
    List<Spec> admitted = new ArrayList<>();
    int[][] left = new int[2][gpus];
    Arrays.fill(left[0], 100);
    Arrays.fill(left[1], 100);
    for (Spec spec : specs) {
      int[] of = left[spec.cls() == OFFLINE ? 1 : 0];
      int percent = spec.policy() == BEST_EFFORT ? 0 : spec.percent();
      if (spec.gpus().stream().allMatch(gpu -> percent <= of[gpu])) {
        spec.gpus().forEach(gpu -> of[gpu] -= percent);
        admitted.add(
            new Spec(
                spec.gpus(), spec.policy(), percent, spec.cls(), spec.callNs(), spec.bursty()));
      }
    }
    return new Mix(gpus, admitted);
  }

  private static GangNode start(Mix mix, boolean withBursts) {
    GangNode node = new GangNode(mix.gpus());
    for (Spec spec : mix.specs()) {
      var request = GangNode.request(spec.policy(), spec.percent(), spec.cls());
      List<Integer> gpus = List.copyOf(new TreeSet<>(spec.gpus())).stream().sorted().toList();
      if (withBursts && spec.bursty()) {
        Worker worker = node.sporadic(gpus, spec.callNs(), request);
        for (long atNs = spec.callNs(); atNs < RUN; atNs += 37 * spec.callNs()) {
          node.at(atNs, () -> worker.arrive(11));
        }
      } else {
        Worker ignored = node.backlogged(gpus, spec.callNs(), request);
      }
    }
    return node;
  }

  private static Mix upperOnly(Mix mix) {
    return new Mix(mix.gpus(), mix.specs().stream().filter(s -> s.cls() != OFFLINE).toList());
  }

  /** {@link GangNode#runUntil} fails if two tenants use a GPU at once. */
  @Property(tries = 50)
  void turnsAreOnAllGpusOrNone(@ForAll("mixes") Mix mix) {
    GangNode node = start(mix, true);
    node.runUntil(RUN / 2);
    assertThat(node.decisions).isNotEmpty();
  }

  /**
   * Every tenant that is entitled to GPU time makes progress: in every two seconds with one GPU, in
   * every four with several, because that is a gang's longest patience for its last turn.
   */
  @Property(tries = 50)
  void everybodyGoesOn(@ForAll("mixes") Mix mix) {
    Mix upper = upperOnly(mix);
    GangNode node = start(upper, true);
    int[] before = new int[upper.specs().size()];
    for (long untilNs = 2 * S; untilNs <= RUN; untilNs += 2 * S) {
      node.runUntil(untilNs);
      for (int i = 0; i < upper.specs().size(); i++) {
        Worker worker = node.workers.get(i);
        boolean whole = untilNs == RUN;
        boolean single = worker.gpus.size() == 1;
        if (isEntitled(upper, i) && (single || whole)) {
          assertThat(worker.finished)
              .as("%s of %s until %d", worker.id, upper, untilNs / MS)
              .isGreaterThan(single ? before[i] : 0);
        }
        before[i] = worker.finished;
      }
    }
  }

  /** If the shares of others sum to 100, nothing is left for best effort. */
  private static boolean isEntitled(Mix mix, int i) {
    return mix.specs().get(i).policy() != BEST_EFFORT
        || mix.specs().get(i).gpus().stream().allMatch(gpu -> guaranteed(mix, gpu) < 100);
  }

  private static int guaranteed(Mix mix, int gpu) {
    return mix.specs().stream()
        .filter(spec -> spec.policy() != BEST_EFFORT && spec.gpus().contains(gpu))
        .mapToInt(Spec::percent)
        .sum();
  }

  /**
   * What offline work used before the best-effort tenant came must not count a second time when
   * that tenant has gone.
   */
  @Example
  void timeThatIsToldLateCountsOnce() {
    Spec bestEffort = new Spec(Set.of(1), BEST_EFFORT, 0, ONLINE, 200 * US, true);
    Spec fixed = new Spec(Set.of(1), FIXED_SHARE, 5, ONLINE, 200 * US, true);
    Spec gang = new Spec(Set.of(0, 1), BEST_EFFORT, 0, OFFLINE, 522_893, false);
    fixedShareIsNeverExceeded(new Mix(2, List.of(bestEffort, fixed, gang)));
  }

  /**
   * The same while that tenant comes and goes, if the time was clocked when all were at their cap.
   * The second fixed share would get 38.3 %.
   */
  @Example
  void timeThatIsToldLateCountsOnceAlsoIfTheClockHasCaughtUp() {
    Spec gang = new Spec(Set.of(0, 2), BEST_EFFORT, 0, OFFLINE, 500_026, true);
    Spec bestEffort = new Spec(Set.of(2), BEST_EFFORT, 0, ONLINE, 200_024, true);
    Spec offline = new Spec(Set.of(2), FIXED_SHARE, 10, OFFLINE, 229_484, true);
    Spec fixed = new Spec(Set.of(2), FIXED_SHARE, 38, NEARLINE, 200_007, false);
    fixedShareIsNeverExceeded(new Mix(3, List.of(gang, bestEffort, offline, fixed)));
  }

  @Property(tries = 30)
  void fixedShareIsNeverExceeded(@ForAll("mixes") Mix mix) {
    GangNode node = start(mix, true);
    for (long untilNs = 500 * MS; untilNs <= RUN / 2; untilNs += 500 * MS) {
      node.runUntil(untilNs);
      for (int i = 0; i < mix.specs().size(); i++) {
        Spec spec = mix.specs().get(i);
        if (spec.policy() == FIXED_SHARE) {
          double mostNs = spec.percent() / 100.0 * untilNs + 2 * TURN + spec.callNs();
          assertThat((double) node.workers.get(i).usedNs()).isLessThanOrEqualTo(mostNs + 1);
        }
      }
    }
  }

  @Property(tries = 30)
  void offlineNeverRunsWhereAnOnlineOneWaits(@ForAll("mixes") Mix mix) {
    GangNode node = start(mix, true);
    for (long untilNs = 7 * MS; untilNs <= S; untilNs += 7 * MS) {
      node.runUntil(untilNs);
      for (int i = 0; i < mix.specs().size(); i++) {
        Spec spec = mix.specs().get(i);
        boolean single = spec.gpus().size() == 1;
        boolean mayRun = single && spec.policy() != FIXED_SHARE;
        if (mayRun && spec.cls() != OFFLINE && node.workers.get(i).hasWork()) {
          for (int k = 0; k < mix.specs().size(); k++) {
            Spec other = mix.specs().get(k);
            if (other.cls() == OFFLINE && other.gpus().containsAll(spec.gpus())) {
              assertThat(node.workers.get(k).isOpen())
                  .as("%d beside %d of %s", k, i, mix)
                  .isFalse();
            }
          }
        }
      }
    }
  }

  @Property(tries = 50)
  void closingAllRestoresTheStartState(
      @ForAll("mixes") Mix mix, @ForAll @IntRange(min = 1, max = 1000) int stopMs) {
    GangNode node = start(mix, true);
    node.runUntil(stopMs * MS);
    for (Worker worker : node.workers) {
      worker.close();
    }
    for (int gpu = 0; gpu < mix.gpus(); gpu++) {
      assertThat(node.schedulers.get(gpu).holder()).isNull();
      assertThat(node.seats.get(gpu).wakeAtNs()).isEqualTo(TurnStepper.NEVER);
    }
  }

  @Property(tries = 8)
  void theSameEventsGiveTheSameDecisions(@ForAll("mixes") Mix mix) {
    GangNode first = start(mix, true);
    GangNode second = start(mix, true);
    first.runUntil(2 * S);
    second.runUntil(2 * S);
    assertThat(second.decisions).isEqualTo(first.decisions);
  }
}
