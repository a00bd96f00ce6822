package dev.vgpu.core.schedule;

import static dev.vgpu.simulation.VirtualNode.MS;
import static dev.vgpu.simulation.VirtualNode.S;
import static dev.vgpu.simulation.VirtualNode.US;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.VirtualGate;
import dev.vgpu.simulation.VirtualNode;
import java.util.ArrayList;
import java.util.List;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.Combinators;
import net.jqwik.api.Example;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;

/** The promises of each policy and class, for any mix of tenants. */
@Tag("property")
class ShareSchedulerProperties {
  private static final long TURN = 2 * MS;
  private static final long RUN = 10 * S;

  /** A tenant that always has calls of one length, or brings them in bursts. */
  record Spec(SharePolicy policy, int percent, PreemptionClass cls, long callNs, boolean bursty) {}

  /** Tenants whose guaranteed shares fit, as admission ensures. */
  record Mix(List<Spec> specs) {
    long slackNs() {
      return specs.stream().mapToLong(spec -> TURN + spec.callNs()).sum();
    }
  }

  @Provide
  Arbitrary<Mix> mixes() {
    Arbitrary<Spec> spec =
        Combinators.combine(
                Arbitraries.of(SharePolicy.values()),
                Arbitraries.integers().between(1, 60),
                Arbitraries.of(PreemptionClass.values()),
                Arbitraries.longs().between(500 * US, 40 * MS),
                Arbitraries.of(true, false))
            .as(Spec::new);
    return spec.list().ofMinSize(1).ofMaxSize(6).map(ShareSchedulerProperties::admitted);
  }

  private static Mix admitted(List<Spec> specs) {
    List<Spec> admitted = new ArrayList<>();
    int[] left = {100, 100};
    for (Spec spec : specs) {
      int group = spec.cls() == PreemptionClass.OFFLINE ? 1 : 0;
      boolean guaranteed = spec.policy() != SharePolicy.BEST_EFFORT;
      if (guaranteed && left[group] < 1) {
        continue;
      }
      int percent = guaranteed ? Math.min(spec.percent(), left[group]) : 0;
      left[group] -= percent;
      admitted.add(new Spec(spec.policy(), percent, spec.cls(), spec.callNs(), spec.bursty()));
    }
    return new Mix(admitted);
  }

  private static VirtualNode start(Mix mix, int floorPercent, boolean withBursts) {
    VirtualNode node = new VirtualNode(floorPercent);
    for (Spec spec : mix.specs()) {
      if (withBursts && spec.bursty()) {
        int tenant = node.sporadic(spec.policy(), spec.percent(), spec.cls());
        for (long atNs = spec.callNs(); atNs < RUN; atNs += 37 * spec.callNs()) {
          for (int i = 0; i < 11; i++) {
            node.arrive(tenant, atNs, spec.callNs());
          }
        }
      } else {
        node.backlogged(spec.policy(), spec.percent(), spec.cls(), spec.callNs());
      }
    }
    return node;
  }

  /** By no more than a turn takes a tenant ahead of its share ({@code TurnLength}), and a call. */
  @Property(tries = 100)
  void fixedShareIsNeverExceeded(
      @ForAll("mixes") Mix mix, @ForAll @IntRange(max = 30) int floorPercent) {
    VirtualNode node = start(mix, floorPercent, true);
    for (long untilNs = 100 * MS; untilNs <= RUN; untilNs += 330 * MS) {
      node.runUntil(untilNs);
      for (int i = 0; i < mix.specs().size(); i++) {
        Spec spec = mix.specs().get(i);
        if (spec.policy() == SharePolicy.FIXED_SHARE) {
          double aheadNs = Math.max((double) TURN, SchedulerSettings.ACCURACY_NS) + spec.callNs();
          double capNs = spec.percent() / 100.0 * untilNs + aheadNs;
          assertThat((double) node.usedNs(i)).as("tenant %d", i).isLessThanOrEqualTo(capNs + 1);
        }
      }
    }
  }

  /** If only 10 ms of each long floor turn were made up for, the tenant would get 28.7 %. */
  @Example
  void longFloorTurnsAreMadeUpForInFull() {
    Spec offline = new Spec(SharePolicy.FIXED_SHARE, 6, PreemptionClass.OFFLINE, 17_266_237, true);
    Spec online = new Spec(SharePolicy.FIXED_SHARE, 29, PreemptionClass.ONLINE, 500_000, false);
    guaranteedShareIsGiven(new Mix(List.of(offline, online)), 16);
  }

  /**
   * If a level forgot what floor turns took once nobody takes surplus, the tenant would get 40 %.
   */
  @Example
  void floorTurnsAreMadeUpForAlsoIfTakersOfSurplusComeAndGo() {
    Spec burst = new Spec(SharePolicy.BURST_SHARE, 12, PreemptionClass.NEARLINE, 500_005, true);
    Spec offline = new Spec(SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, 6_804_196, false);
    Spec fixed = new Spec(SharePolicy.FIXED_SHARE, 43, PreemptionClass.NEARLINE, 500_507, false);
    guaranteedShareIsGiven(new Mix(List.of(burst, offline, fixed)), 14);
  }

  /** Also beside a floor, as far as both fit. */
  @Property(tries = 100)
  void guaranteedShareIsGiven(
      @ForAll("mixes") Mix mix, @ForAll @IntRange(max = 30) int mostFloorPercent) {
    int guaranteed =
        mix.specs().stream()
            .filter(spec -> spec.cls() != PreemptionClass.OFFLINE)
            .mapToInt(Spec::percent)
            .sum();
    VirtualNode node = start(mix, Math.min(mostFloorPercent, 100 - guaranteed), true);
    boolean upperBusy = mix.specs().stream().anyMatch(s -> s.cls() != PreemptionClass.OFFLINE);
    for (long untilNs = 500 * MS; untilNs <= RUN; untilNs += 1500 * MS) {
      node.runUntil(untilNs);
      for (int i = 0; i < mix.specs().size(); i++) {
        Spec spec = mix.specs().get(i);
        boolean promised = spec.cls() != PreemptionClass.OFFLINE || !upperBusy;
        if (promised && !spec.bursty() && spec.percent() > 0) {
          double leastNs = spec.percent() / 100.0 * untilNs - mix.slackNs();
          assertThat((double) node.usedNs(i)).as("tenant %d", i).isGreaterThanOrEqualTo(leastNs);
        }
      }
    }
  }

  @Property(tries = 100)
  void busyBestEffortTenantsOfALevelGetEqualParts(@ForAll("mixes") Mix mix) {
    VirtualNode node = start(mix, 0, false);
    node.runUntil(RUN);
    for (boolean offline : new boolean[] {false, true}) {
      List<Long> used = new ArrayList<>();
      for (int i = 0; i < mix.specs().size(); i++) {
        Spec spec = mix.specs().get(i);
        if (spec.policy() == SharePolicy.BEST_EFFORT
            && (spec.cls() == PreemptionClass.OFFLINE) == offline) {
          used.add(node.usedNs(i));
        }
      }
      long most = used.stream().mapToLong(Long::longValue).max().orElse(0);
      long least = used.stream().mapToLong(Long::longValue).min().orElse(0);
      assertThat(most - least).isLessThanOrEqualTo(2 * mix.slackNs());
    }
  }

  @Property(tries = 100)
  void theGpuIsNotIdleWhileSomebodyMayUseIt(@ForAll("mixes") Mix mix) {
    VirtualNode node = start(mix, 0, false);
    node.runUntil(RUN);
    long usedNs = 0;
    double capped = 0;
    boolean uncapped = false;
    for (int i = 0; i < mix.specs().size(); i++) {
      usedNs += node.usedNs(i);
      capped += mix.specs().get(i).percent() / 100.0;
      uncapped |= mix.specs().get(i).policy() != SharePolicy.FIXED_SHARE;
    }
    if (uncapped) {
      assertThat(usedNs).isEqualTo(node.nowNs());
    } else if (mix.specs().stream().noneMatch(s -> s.cls() == PreemptionClass.OFFLINE)) {
      assertThat((double) usedNs)
          .isGreaterThanOrEqualTo(Math.min(1, capped) * node.nowNs() - mix.slackNs());
    }
  }

  @Property(tries = 100)
  void offlineNeverStarvesWithAFloor(
      @ForAll("mixes") Mix mix, @ForAll @IntRange(min = 1, max = 50) int floorPercent) {
    VirtualNode node = start(mix, floorPercent, false);
    node.runUntil(RUN);
    long offlineNs = 0;
    boolean anyUncapped = false;
    for (int i = 0; i < mix.specs().size(); i++) {
      if (mix.specs().get(i).cls() == PreemptionClass.OFFLINE) {
        offlineNs += node.usedNs(i);
        anyUncapped |= mix.specs().get(i).policy() != SharePolicy.FIXED_SHARE;
      }
    }
    if (anyUncapped) {
      assertThat((double) offlineNs)
          .isGreaterThanOrEqualTo(floorPercent / 100.0 * RUN - 2 * mix.slackNs());
    }
  }

  @Property(tries = 100)
  void offlineRunsOnlyWhereNoOtherTenantMayRun(@ForAll("mixes") Mix mix) {
    VirtualNode node = start(mix, 0, true);
    for (long untilNs = 5 * MS; untilNs <= 2 * S; untilNs += 5 * MS) {
      node.runUntil(untilNs);
      for (int i = 0; i < mix.specs().size(); i++) {
        Spec spec = mix.specs().get(i);
        VirtualGate gate = node.gate(i);
        boolean mayRun =
            gate.hasWork()
                && spec.policy() != SharePolicy.FIXED_SHARE
                && spec.cls() != PreemptionClass.OFFLINE;
        if (mayRun) {
          assertThat(node.gates())
              .noneMatch(
                  other ->
                      other.isOpen()
                          && mix.specs().get(node.gates().indexOf(other)).cls()
                              == PreemptionClass.OFFLINE);
        }
      }
    }
  }

  @Property(tries = 50)
  void theSameEventsGiveTheSameDecisions(
      @ForAll("mixes") Mix mix, @ForAll @IntRange(max = 30) int floorPercent) {
    VirtualNode first = start(mix, floorPercent, true);
    VirtualNode second = start(mix, floorPercent, true);
    first.runUntil(RUN);
    second.runUntil(RUN);
    assertThat(second.decisions()).isEqualTo(first.decisions());
  }

  @Property(tries = 100)
  void removingAllTenantsLeavesNothingBehind(
      @ForAll("mixes") Mix mix, @ForAll @IntRange(min = 1, max = 1000) int stopMs) {
    VirtualNode node = start(mix, 0, true);
    node.runUntil(stopMs * MS);
    for (Tenant tenant : node.tenants()) {
      node.scheduler().remove(tenant, node.nowNs());
    }
    node.scheduler().doWork(node.nowNs());
    assertThat(node.scheduler().holder()).isNull();
    assertThat(node.scheduler().nextWakeNs()).isEqualTo(TurnStepper.NEVER);
  }
}
