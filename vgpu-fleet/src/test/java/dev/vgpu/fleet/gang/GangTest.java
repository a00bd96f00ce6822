package dev.vgpu.fleet.gang;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

class GangTest {
  private static FleetQueue queue(Fleet fleet) {
    List<Request> usual = List.of(whole("usual", NEARLINE, 1), share("usual", 50));
    return new FleetQueue(fleet, Policies.of(Policies.OURS, fleet, Workload.of(usual)));
  }

  private static Request whole(String name, PreemptionClass preemptionClass, int gpus) {
    return Request.builder(name).preemptionClass(preemptionClass).wholeGpus(gpus).build();
  }

  private static Request share(String name, int percent) {
    return Request.builder(name).share(percent).build();
  }

  private static void addWholes(
      FleetQueue queue, String gang, PreemptionClass preemptionClass, int members, double runS) {
    Terms terms = Terms.of(gang, members, preemptionClass, runS);
    for (int i = 0; i < members; i++) {
      queue.add(terms, whole(gang + "-" + i, preemptionClass, 1));
    }
  }

  private static List<String> started(List<Decision> decisions) {
    return decisions.stream().filter(Decision.Start.class::isInstance).map(Decision::gang).toList();
  }

  private static List<String> evicted(List<Decision> decisions) {
    return decisions.stream().filter(Decision.Evict.class::isInstance).map(Decision::gang).toList();
  }

  /**
   * The members of two gangs arrive alternately, with room for one gang: half of each would block
   * both.
   */
  @Test
  void membersOfTwoGangsThatComeInTurnDoNotBlockEachOther() {
    FleetQueue queue = queue(SmallFleets.alike(2, 1));
    Terms first = Terms.of("first", 2, NEARLINE, 10);
    Terms second = Terms.of("second", 2, NEARLINE, 10);
    queue.add(first, whole("A", NEARLINE, 1));
    assertThat(queue.decide(0)).isEmpty();
    queue.add(second, whole("C", NEARLINE, 1));
    assertThat(queue.decide(0)).isEmpty();
    queue.add(first, whole("B", NEARLINE, 1));
    assertThat(started(queue.decide(0))).containsExactly("first");
    queue.add(second, whole("D", NEARLINE, 1));
    assertThat(queue.decide(1)).isEmpty();
    queue.end("first");
    assertThat(started(queue.decide(10))).containsExactly("second");
  }

  @Test
  void ninetyNineOfAHundredHoldNothing() {
    Fleet fleet = SmallFleets.alike(25, 4);
    FleetQueue queue = queue(fleet);
    addWholes(queue, "one", NEARLINE, 1, 100);
    assertThat(started(queue.decide(0))).containsExactly("one");
    addWholes(queue, "hundred", NEARLINE, 100, 100);
    assertThat(queue.decide(0)).isEmpty();
    assertThat(fleet.placements()).hasSize(1);
    assertThat(queue.reservation().orElseThrow().startS()).isEqualTo(100);
    queue.end("one");
    assertThat(started(queue.decide(100))).containsExactly("hundred");
    assertThat(fleet.idlePercent()).isZero();
  }

  @Test
  void sixteenHalvesFillEightGpus() {
    Fleet fleet = SmallFleets.alike(1, 8);
    FleetQueue queue = queue(fleet);
    Terms terms = Terms.of("halves", 16, NEARLINE, 10);
    for (int i = 0; i < 16; i++) {
      queue.add(terms, share("half-" + i, 50));
    }
    queue.add(Terms.of("more", 1, NEARLINE, 10), share("more", 1));
    assertThat(started(queue.decide(0))).containsExactly("halves");
    assertThat(fleet.idlePercent()).isZero();
    SmallFleets.check(fleet);
    assertThat(queue.waiting()).containsExactly("more");
  }

  /** Small gangs arrive without end; the large one starts when the earlier ones have ended. */
  @Test
  void aStreamOfSmallOnesDoesNotDelayALargeGang() {
    Fleet fleet = SmallFleets.alike(4, 2);
    FleetQueue queue = queue(fleet);
    for (int i = 0; i < 8; i++) {
      addWholes(queue, "old-" + i, NEARLINE, 1, 10 + i);
    }
    queue.decide(0);
    addWholes(queue, "large", NEARLINE, 8, 50);
    double start = -1;
    for (int second = 1; second < 60 && start < 0; second++) {
      addWholes(queue, "long-" + second, NEARLINE, 1, 1000);
      addWholes(queue, "short-" + second, NEARLINE, 1, 2);
      for (int i = 0; i < 8; i++) {
        if (second >= 10 + i) {
          queue.end("old-" + i);
        }
      }
      queue.end("short-" + (second - 2));
      if (started(queue.decide(second)).contains("large")) {
        start = second;
      }
    }
    assertThat(start).isEqualTo(17);
  }

  @Test
  void whatEndsBeforeTheReservationFillsTheGap() {
    FleetQueue queue = queue(SmallFleets.alike(2, 1));
    addWholes(queue, "runs", NEARLINE, 1, 100);
    queue.decide(0);
    addWholes(queue, "both", NEARLINE, 2, 10);
    addWholes(queue, "late", NEARLINE, 1, 101);
    addWholes(queue, "short", NEARLINE, 1, 99);
    assertThat(started(queue.decide(1))).containsExactly("short");
    assertThat(queue.waiting()).containsExactly("both", "late");
  }

  @Test
  void offlineGangsGoWholeForOnlineOnes() {
    FleetQueue queue = queue(SmallFleets.alike(2, 2));
    addWholes(queue, "old", OFFLINE, 2, 100);
    addWholes(queue, "young", OFFLINE, 2, 100);
    assertThat(started(queue.decide(0))).containsExactly("old", "young");
    addWholes(queue, "online", ONLINE, 1, 100);
    List<Decision> decisions = queue.decide(1);
    assertThat(evicted(decisions)).containsExactly("young");
    assertThat(started(decisions)).contains("online").doesNotContain("young");
    assertThat(queue.waiting()).containsExactly("young");
  }

  /** Four GPUs with half of their memory free are no place for a gang that needs most of one. */
  @Test
  void nobodyIsEvictedInVain() {
    Fleet fleet = SmallFleets.alike(1, 4);
    FleetQueue queue = queue(fleet);
    for (int i = 0; i < 4; i++) {
      queue.add(
          Terms.of("holds-" + i, 1, NEARLINE, 100),
          Request.builder("holds-" + i).share(10).memory(MemorySize.ofGibibytes(30)).build());
    }
    addWholes(queue, "none", OFFLINE, 1, 100);
    for (int i = 0; i < 4; i++) {
      queue.add(
          Terms.of("batch-" + i, 1, OFFLINE, 100),
          Request.builder("batch-" + i)
              .share(10)
              .memory(MemorySize.ofGibibytes(8))
              .preemptionClass(OFFLINE)
              .build());
    }
    queue.decide(0);
    assertThat(queue.waiting()).containsExactly("none");
    queue.add(
        Terms.of("large", 1, ONLINE, 100),
        Request.builder("large")
            .share(10)
            .memory(MemorySize.ofGibibytes(20))
            .preemptionClass(ONLINE)
            .build());
    assertThat(queue.decide(1)).isEmpty();
    queue.add(
        Terms.of("fits", 1, ONLINE, 100),
        Request.builder("fits")
            .share(10)
            .memory(MemorySize.ofGibibytes(10))
            .preemptionClass(ONLINE)
            .build());
    assertThat(evicted(queue.decide(2))).isEmpty();
    queue.end("large");
    List<Decision> decisions = queue.decide(3);
    assertThat(evicted(decisions)).containsExactly("batch-3");
    assertThat(started(decisions)).contains("fits");
  }

  @Test
  void nearlineIsNeverEvicted() {
    FleetQueue queue = queue(SmallFleets.alike(1, 1));
    addWholes(queue, "nearline", NEARLINE, 1, 100);
    queue.decide(0);
    addWholes(queue, "online", ONLINE, 1, 100);
    assertThat(queue.decide(1)).isEmpty();
  }

  @Test
  void whoeverDependsOnAnotherIsPlacedWithIt() {
    Fleet fleet = SmallFleets.alike(3, 2);
    FleetQueue queue = queue(fleet);
    addWholes(queue, "one", NEARLINE, 1, 100);
    queue.decide(0);
    int taken = fleet.placement("one-0").orElseThrow().node();
    queue.add(Terms.of("a", 1, NEARLINE, 10), whole("A", NEARLINE, 1));
    queue.add(
        Terms.of("b", 1, NEARLINE, 10), Request.builder("B").wholeGpus(1).sameNodeAs("A").build());
    assertThat(started(queue.decide(1))).containsExactly("a", "b");
    Placement a = fleet.placement("A").orElseThrow();
    assertThat(fleet.placement("B").orElseThrow().node()).isEqualTo(a.node());
    assertThat(a.node()).isNotEqualTo(taken);
  }

  @Test
  void aChainOfDependentsIsPlacedTogetherInWhateverOrderItCame() {
    Fleet fleet = SmallFleets.alike(2, 3);
    FleetQueue queue = queue(fleet);
    addWholes(queue, "one", NEARLINE, 1, 100);
    queue.decide(0);
    int taken = fleet.placement("one-0").orElseThrow().node();
    queue.add(
        Terms.of("c", 1, NEARLINE, 10), Request.builder("C").wholeGpus(1).sameNodeAs("B").build());
    queue.add(
        Terms.of("b", 1, NEARLINE, 10), Request.builder("B").wholeGpus(1).sameNodeAs("A").build());
    assertThat(queue.decide(1)).isEmpty();
    queue.add(Terms.of("a", 1, NEARLINE, 10), whole("A", NEARLINE, 1));
    assertThat(started(queue.decide(2))).containsExactlyInAnyOrder("a", "b", "c");
    for (String name : List.of("A", "B", "C")) {
      assertThat(fleet.placement(name).orElseThrow().node()).isNotEqualTo(taken);
    }
  }

  @Test
  void aDependentThatIsNotCompleteHoldsNobodyUp() {
    FleetQueue queue = queue(SmallFleets.alike(1, 2));
    queue.add(
        Terms.of("b", 2, NEARLINE, 10), Request.builder("B").wholeGpus(1).sameNodeAs("A").build());
    queue.add(Terms.of("a", 1, NEARLINE, 10), whole("A", NEARLINE, 1));
    assertThat(started(queue.decide(1))).containsExactly("a");
  }

  @Test
  void ifBothDoNotFitAPlaceIsHeldForBoth() {
    Fleet fleet = SmallFleets.alike(2, 2);
    FleetQueue queue = queue(fleet);
    addWholes(queue, "x", NEARLINE, 1, 100);
    addWholes(queue, "y", NEARLINE, 1, 200);
    addWholes(queue, "z", NEARLINE, 1, 300);
    queue.decide(0);
    queue.add(Terms.of("a", 1, NEARLINE, 10), whole("A", NEARLINE, 1));
    queue.add(
        Terms.of("b", 1, NEARLINE, 10), Request.builder("B").wholeGpus(1).sameNodeAs("A").build());
    assertThat(queue.decide(1)).isEmpty();
    assertThat(queue.reservation().orElseThrow().gang()).isEqualTo("a");
    queue.end(queue.reservation().orElseThrow().startS() == 100 ? "x" : "y");
    queue.end("z");
    assertThat(started(queue.decide(300))).containsExactly("a", "b");
  }

  @Test
  void aSpreadGroupIsOnDifferentNodesAndEvenOverRacks() {
    Fleet fleet = SmallFleets.alike(6, 4);
    FleetQueue queue = queue(fleet);
    for (int i = 0; i < 4; i++) {
      queue.add(
          Terms.of("s" + i, 1, NEARLINE, 10),
          Request.builder("s" + i).share(10).spread("group").build());
    }
    assertThat(started(queue.decide(0))).hasSize(4);
    List<Integer> nodes = fleet.nodesOf("group").stream().toList();
    assertThat(nodes).hasSize(4).doesNotHaveDuplicates();
    assertThat(nodes.stream().filter(node -> node % 2 == 0)).hasSize(2);
  }

  @Test
  void aGangThatNeedsOneRackGetsOne() {
    Fleet fleet = SmallFleets.alike(4, 2);
    FleetQueue queue = queue(fleet);
    Terms terms = new Terms("close", 4, NEARLINE, 10, Terms.Closeness.RACK_REQUIRED);
    for (int i = 0; i < 4; i++) {
      queue.add(terms, whole("close-" + i, NEARLINE, 1));
    }
    assertThat(started(queue.decide(0))).containsExactly("close");
    assertThat(
            fleet.placements().values().stream()
                .map(one -> fleet.nodes().get(one.node()).rack())
                .distinct())
        .hasSize(1);
  }

  @Test
  void whatCannotEverFitIsRefusedWithWhatWould() {
    FleetQueue queue = queue(SmallFleets.alike(2, 4));
    Terms terms = Terms.of("bad", 1, NEARLINE, 10);
    assertThatThrownBy(() -> share("bad", 0))
        .hasMessageContaining("1 to 100")
        .hasMessageContaining("share=0");
    assertThatThrownBy(() -> share("bad", 101)).hasMessageContaining("share=101");
    assertThatThrownBy(
            () ->
                queue.add(
                    terms,
                    Request.builder("bad").share(10).memory(MemorySize.ofGibibytes(80)).build()))
        .hasMessageContaining("memory=80GiB")
        .hasMessageContaining("memory=40GiB");
    assertThatThrownBy(
            () ->
                queue.add(
                    terms, Request.builder("bad").wholeGpus(1).models(Set.of("H900")).build()))
        .hasMessageContaining("H900")
        .hasMessageContaining("A100");
    assertThatThrownBy(() -> queue.add(terms, whole("bad", NEARLINE, 5)))
        .hasMessageContaining("gpus=5")
        .hasMessageContaining("gpus=4");
    assertThatThrownBy(() -> queue.add(terms, Request.builder("bad").migInstance("9g.1tb").build()))
        .hasMessageContaining("9g.1tb");
    assertThat(queue.waiting()).isEmpty();
  }

  /** The caller knows which gangs leave; the queue knows whether that makes room. */
  @Test
  void aGangStartsInTheRoomThatOthersLeaveOrNothingChanges() {
    Fleet fleet = SmallFleets.alike(2, 1);
    FleetQueue queue = queue(fleet);
    for (String name : List.of("a", "b", "c", "d")) {
      queue.add(Terms.of(name, 1, NEARLINE, 100), share(name, 50));
    }
    assertThat(started(queue.decide(0))).containsExactly("a", "b", "c", "d");
    int node = fleet.placement("a").orElseThrow().node();
    String beside =
        List.of("b", "c", "d").stream()
            .filter(one -> fleet.placement(one).orElseThrow().node() == node)
            .findFirst()
            .orElseThrow();
    String far =
        List.of("b", "c", "d").stream()
            .filter(one -> !one.equals(beside))
            .findFirst()
            .orElseThrow();
    queue.add(Terms.of("wide", 1, NEARLINE, 100), whole("wide", NEARLINE, 1));
    Request wide = whole("wide", NEARLINE, 1);
    Map<String, Placement> before = Map.copyOf(fleet.placements());
    long placed = fleet.placedCount();
    assertThat(queue.startInstead("wide", wide, Set.of("a", far), false, 1)).isEmpty();
    assertThat(queue.startInstead("none", wide, Set.of("a", beside), false, 1)).isEmpty();
    assertThat(fleet.placements()).isEqualTo(before);
    assertThat(fleet.placedCount()).isEqualTo(placed);
    assertThat(queue.waiting()).containsExactly("wide");
    List<Decision> decisions = queue.startInstead("wide", wide, Set.of("a", beside), false, 1);
    assertThat(started(decisions)).containsExactly("wide");
    assertThat(fleet.placement("wide").orElseThrow().node()).isEqualTo(node);
    assertThat(queue.running()).doesNotContain("a", beside).hasSize(3);
    queue.end("a"); // it has really ended now
    SmallFleets.check(fleet);
  }

  @Test
  void reservedNodesAreUsedInsteadByThoseThatAreAheadOnly() {
    FleetQueue queue = queue(SmallFleets.alike(1, 1));
    queue.add(Terms.of("a", 1, NEARLINE, 100), share("a", 50));
    queue.add(Terms.of("b", 1, NEARLINE, 100), share("b", 30));
    queue.decide(0);
    queue.add(Terms.of("first", 1, NEARLINE, 100), share("first", 90));
    queue.add(Terms.of("later", 1, NEARLINE, 100), share("later", 60));
    assertThat(queue.decide(0)).isEmpty();
    assertThat(queue.reservation().orElseThrow().gang()).isEqualTo("first");
    Request later = share("later", 60);
    assertThat(queue.startInstead("later", later, Set.of("a"), false, 1)).isEmpty();
    assertThat(started(queue.startInstead("later", later, Set.of("a"), true, 1)))
        .containsExactly("later");
  }
}
