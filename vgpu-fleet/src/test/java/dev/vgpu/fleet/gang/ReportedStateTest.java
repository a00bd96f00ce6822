package dev.vgpu.fleet.gang;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** A queue whose caller reports what runs, what has ended, and which nodes may be used. */
class ReportedStateTest {
  private static final double NEVER = Double.POSITIVE_INFINITY;

  private final Fleet fleet = SmallFleets.alike(2, 2);
  private final FleetQueue queue =
      new FleetQueue(fleet, Policies.of("best-fit", fleet, Workload.of(List.of(whole("usual")))));

  private static Request whole(String name) {
    return Request.builder(name).wholeGpus(1).build();
  }

  private static Placement at(String name, int node, int gpu) {
    return new Placement(whole(name), node, List.of(gpu), 0);
  }

  private void add(String gang, int members, double runS) {
    for (int i = 0; i < members; i++) {
      queue.add(Terms.of(gang, members, NEARLINE, runS), whole(gang + "-" + i));
    }
  }

  @Test
  void aGangThatRunsIsTakenOverWhole() {
    queue.adopt(Terms.of("runs", 2, NEARLINE, NEVER), List.of(at("a", 0, 1), at("b", 1, 0)), 0);
    assertThat(queue.running()).containsExactly("runs");
    assertThat(fleet.idlePercent()).isEqualTo(200);
    SmallFleets.check(fleet);
    queue.end("runs");
    assertThat(fleet.idlePercent()).isEqualTo(400);
  }

  @Test
  void whatIsReportedWronglyChangesNothing() {
    Terms two = Terms.of("two", 2, NEARLINE, NEVER);
    assertThatThrownBy(() -> queue.adopt(two, List.of(at("a", 0, 0), at("b", 0, 0)), 0))
        .hasMessageContaining("no room");
    assertThatThrownBy(() -> queue.adopt(two, List.of(at("a", 0, 0), at("b", 0, 2)), 0))
        .hasMessageContaining("no room");
    assertThatThrownBy(() -> queue.adopt(two, List.of(at("a", 0, 0), at("b", 9, 0)), 0))
        .hasMessageContaining("no such node");
    assertThatThrownBy(() -> queue.adopt(two, List.of(at("a", 0, 0)), 0))
        .hasMessageContaining("members are missing");
    assertThat(fleet.placements()).isEmpty();
    assertThat(queue.running()).isEmpty();
  }

  /** A 1g.5gb instance of a card of 40 GiB has 5 GiB. */
  @Test
  void aReportedInstanceIsAsLargeAsItsRequest() {
    Fleet mixed = SmallFleets.mixed();
    Request.Builder request = Request.builder("small").migInstance(SmallFleets.CUT_1G.profile());
    Request tooLarge = request.memory(MemorySize.ofGibibytes(6)).build();
    assertThatThrownBy(() -> mixed.adopt(new Placement(tooLarge, 4, List.of(0), 0)))
        .hasMessageContaining("no room");
    assertThat(mixed.placements()).isEmpty();
    mixed.adopt(new Placement(request.memory(MemorySize.ofGibibytes(5)).build(), 4, List.of(0), 0));
    SmallFleets.check(mixed);
  }

  @Test
  void whoGivesItsPlaceBackIsBeforeLaterOnes() {
    add("first", 4, NEVER);
    add("second", 4, NEVER);
    assertThat(queue.decide(0)).hasSize(1);
    queue.giveBack("first");
    assertThat(fleet.placements()).isEmpty();
    assertThat(queue.waiting()).containsExactly("first", "second");
  }

  @Test
  void whatAMemberThatLeavesHeldIsFreeAtOnce() {
    add("gang", 4, NEVER);
    queue.decide(0);
    queue.leave("gang", "gang-2");
    assertThat(fleet.idlePercent()).isEqualTo(100);
    add("one", 1, NEVER);
    assertThat(queue.decide(1)).hasSize(1);
    assertThatThrownBy(() -> queue.add(Terms.of("gang", 4, NEARLINE, NEVER), whole("gang-4")))
        .hasMessageContaining("not of this gang");
  }

  @Test
  void aGangThatLostAMemberWaitsForAnother() {
    add("gang", 4, NEVER);
    queue.leave("gang", "gang-2");
    assertThat(queue.decide(0)).isEmpty();
    queue.add(Terms.of("gang", 4, NEARLINE, NEVER), whole("gang-4"));
    assertThat(queue.decide(0)).hasSize(1);
  }

  /** Otherwise small gangs without a known end could delay a large one forever. */
  @Test
  void whatHasNoKnownEndStaysOffAHeldPlace() {
    add("runs", 1, NEVER);
    queue.decide(0);
    add("large", 4, NEVER);
    add("small", 1, NEVER);
    assertThat(queue.decide(1)).isEmpty();
    queue.end("runs");
    assertThat(queue.decide(2).get(0).gang()).isEqualTo("large");
  }

  @Test
  void aRequestMayNameItsNodes() {
    queue.add(
        Terms.of("named", 1, NEARLINE, NEVER),
        Request.builder("named").wholeGpus(1).nodes(Set.of("node-1")).build());
    queue.decide(0);
    assertThat(fleet.placement("named").orElseThrow().node()).isEqualTo(1);
  }

  /** Otherwise others take the nodes that it needs, and stay off nodes that it may not use. */
  @Test
  void aReservationFollowsItsRequest() {
    queue.adopt(Terms.of("left", 1, NEARLINE, 50), List.of(at("left", 0, 0)), 0);
    queue.adopt(Terms.of("right", 2, NEARLINE, 90), List.of(at("a", 1, 0), at("b", 1, 1)), 0);
    Request pair = Request.builder("pair").wholeGpus(2).build();
    queue.add(Terms.of("pair", 1, NEARLINE, NEVER), pair);
    assertThat(queue.decide(1)).isEmpty();
    assertThat(queue.reservation().orElseThrow().nodes()).containsExactly(0);
    queue.change("pair", Request.builder("pair").wholeGpus(2).nodes(Set.of("node-1")).build());
    assertThat(queue.decide(2)).isEmpty();
    assertThat(queue.reservation().orElseThrow().nodes()).containsExactly(1);
    add("small", 1, NEVER);
    assertThat(queue.decide(3)).hasSize(1);
    assertThat(fleet.placement("small-0").orElseThrow().node()).isZero();
  }

  /** Otherwise gangs that run longer than expected could delay it without bound. */
  @Test
  void aReservationStaysWhileItsNodesMayBeUsed() {
    queue.adopt(Terms.of("left", 1, NEARLINE, 50), List.of(at("left", 0, 0)), 0);
    queue.adopt(Terms.of("right", 1, NEARLINE, 90), List.of(at("right", 1, 0)), 0);
    queue.add(Terms.of("pair", 1, NEARLINE, NEVER), Request.builder("pair").wholeGpus(2).build());
    assertThat(queue.decide(1)).isEmpty();
    Reservation held = queue.reservation().orElseThrow();
    queue.change("pair", Request.builder("pair").wholeGpus(2).nodes(Set.of("node-0")).build());
    assertThat(queue.decide(60)).isEmpty();
    assertThat(queue.reservation().orElseThrow()).isSameAs(held);
  }

  @Test
  void partsOfACardsMemoryAddUpToTheCard() {
    for (int i = 0; i < 9; i++) {
      queue.add(
          Terms.of("half-" + i, 1, NEARLINE, NEVER),
          Request.builder("half-" + i).bestEffort(1).memoryPercent(50).build());
    }
    assertThat(queue.decide(0)).hasSize(8);
    assertThat(queue.waiting()).hasSize(1);
    SmallFleets.check(fleet);
    assertThatThrownBy(() -> Request.builder("none").bestEffort(1).build())
        .hasMessageContaining("needs memory");
    assertThatThrownBy(() -> Request.builder("none").memoryPercent(101))
        .hasMessageContaining("0 to 100");
  }

  @Test
  void theLargerOfMemoryAndItsPartHolds() {
    Request request =
        Request.builder("both")
            .share(10)
            .memory(MemorySize.ofGibibytes(30))
            .memoryPercent(50)
            .build();
    assertThat(request.shape().mebibytesOn(40 * 1024)).isEqualTo(30 * 1024);
    assertThat(request.shape().mebibytesOn(80 * 1024)).isEqualTo(40 * 1024);
  }

  /** They were there before the queue, or their cluster did not keep them apart. */
  @Test
  void aNodeWithTwoMembersOfASpreadGroupIsKeptFromOthersUntilBothHaveEnded() {
    for (String name : List.of("a", "b")) {
      Request request = Request.builder(name).share(10).spread("group").build();
      queue.adopt(
          Terms.of(name, 1, NEARLINE, NEVER), List.of(new Placement(request, 0, List.of(0), 0)), 0);
    }
    assertThat(fleet.nodesOf("group")).containsExactly(0);
    queue.end("a");
    assertThat(fleet.nodesOf("group")).containsExactly(0);
    queue.add(
        Terms.of("c", 1, NEARLINE, NEVER),
        Request.builder("c").share(10).spread("group").nodes(Set.of("node-0")).build());
    assertThat(queue.decide(0)).isEmpty();
    queue.end("b");
    assertThat(fleet.nodesOf("group")).isEmpty();
    assertThat(queue.decide(0)).hasSize(1);
  }

  private static final Set<Integer> BOTH = Set.of(0, 1);

  @Test
  void aReservationIsTakenOverForAGangThatWaits() {
    Reservation held = new Reservation("pair", 100, Set.of(1));
    queue.adopt(Terms.of("runs", 2, NEARLINE, NEVER), List.of(at("a", 0, 0), at("b", 1, 0)), 0);
    queue.takeOver(held);
    assertThat(queue.reservation()).as("it is not known").isEmpty();
    queue.add(Terms.of("pair", 2, NEARLINE, NEVER), whole("pair-0"));
    queue.takeOver(held);
    assertThat(queue.reservation()).as("it is not complete").isEmpty();
    queue.add(Terms.of("pair", 2, NEARLINE, NEVER), Request.builder("pair-1").wholeGpus(2).build());
    queue.takeOver(held);
    assertThat(queue.reservation()).as("it does not fit there").isEmpty();
    queue.takeOver(new Reservation("pair", 100, BOTH));
    assertThat(queue.decide(50)).isEmpty();
    assertThat(queue.reservation()).hasValue(new Reservation("pair", 100, BOTH));
    queue.takeOver(new Reservation("pair", 200, BOTH));
    assertThat(queue.reservation().orElseThrow().startS()).as("it has one").isEqualTo(100);
    queue.end("runs");
    assertThat(queue.decide(60)).hasSize(1);
    assertThat(queue.reservation()).isEmpty();
    queue.takeOver(held);
    assertThat(queue.reservation()).as("it runs").isEmpty();
  }
}
