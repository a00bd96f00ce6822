package dev.vgpu.fleet.gang;

import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static dev.vgpu.request.PreemptionClass.OFFLINE;
import static dev.vgpu.request.PreemptionClass.ONLINE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeSpec;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.fleet.placement.PlacementPolicy;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.IntPredicate;
import org.junit.jupiter.api.Test;

/** Gangs that each node could serve in part, but all nodes together cannot serve as a whole. */
class ImpossibleGangTest {
  private static FleetQueue queue(Fleet fleet) {
    return new FleetQueue(fleet, policy(fleet));
  }

  private static PlacementPolicy policy(Fleet fleet) {
    List<Request> usual = List.of(Request.builder("usual").wholeGpus(1).build());
    return Policies.of(Policies.OURS, fleet, Workload.of(usual));
  }

  private static void add(
      FleetQueue queue, String gang, PreemptionClass preemptionClass, int members, double runS) {
    Terms terms = Terms.of(gang, members, preemptionClass, runS);
    for (int i = 0; i < members; i++) {
      queue.add(
          terms,
          Request.builder(gang + "-" + i).preemptionClass(preemptionClass).wholeGpus(1).build());
    }
  }

  private static List<String> started(List<Decision> decisions) {
    return decisions.stream().filter(Decision.Start.class::isInstance).map(Decision::gang).toList();
  }

  /** The large gang waits behind the impossible one, and its wait is bounded all the same. */
  @Test
  void theFirstThatCanFitHasTheReservation() {
    FleetQueue queue = queue(SmallFleets.alike(2, 2));
    add(queue, "old", NEARLINE, 1, 10);
    queue.decide(0);
    add(queue, "impossible", NEARLINE, 5, 10);
    add(queue, "large", NEARLINE, 4, 10);
    queue.decide(1);
    assertThat(queue.reservation()).map(Reservation::gang).contains("large");
    add(queue, "endless", NEARLINE, 1, Double.POSITIVE_INFINITY);
    assertThat(queue.decide(2)).as("it would delay the large one").isEmpty();
    queue.end("old");
    assertThat(started(queue.decide(10))).containsExactly("large");
    assertThat(queue.waiting()).containsExactly("impossible", "endless");
  }

  /** Requests that must be on different nodes say nothing about equal ones that need not be. */
  @Test
  void anEqualOneThatMayShareANodeStarts() {
    FleetQueue queue = queue(SmallFleets.alike(2, 2));
    Terms apart = Terms.of("apart", 3, NEARLINE, 10);
    Terms anywhere = Terms.of("anywhere", 3, NEARLINE, 10);
    for (int i = 0; i < 3; i++) {
      Request.Builder member = Request.builder("apart-" + i).preemptionClass(NEARLINE).share(10);
      queue.add(apart, member.spread("apart").build());
    }
    for (int i = 0; i < 3; i++) {
      queue.add(
          anywhere, Request.builder("anywhere-" + i).preemptionClass(NEARLINE).share(10).build());
    }
    assertThat(started(queue.decide(0))).containsExactly("anywhere");
  }

  @Test
  void theReservationOfALessUrgentOneIsKept() {
    FleetQueue queue = queue(SmallFleets.alike(2, 2));
    add(queue, "old", NEARLINE, 1, 10);
    add(queue, "large", NEARLINE, 4, 10);
    queue.decide(0);
    Reservation held = queue.reservation().orElseThrow();
    add(queue, "impossible", ONLINE, 5, 10);
    queue.decide(1);
    assertThat(queue.reservation()).contains(held);
  }

  @Test
  void itEvictsNobodyAndTheNextOneMay() {
    FleetQueue queue = queue(SmallFleets.alike(1, 2));
    add(queue, "batch", OFFLINE, 2, 100);
    queue.decide(0);
    add(queue, "impossible", ONLINE, 3, 100);
    assertThat(queue.decide(1)).isEmpty();
    add(queue, "online", ONLINE, 1, 100);
    assertThat(started(queue.decide(2))).containsExactly("online");
  }

  @Test
  void itSaysWhatItAskedForAndWhatThereIs() {
    List<NodeSpec> nodes =
        List.of(
            SmallFleets.node("a", "A100", 2),
            SmallFleets.node("b", "A100", 2),
            SmallFleets.node("c", "T4", 4));
    FleetQueue queue = queue(new Fleet(nodes));
    Terms terms = new Terms("ring", 3, NEARLINE, 10, Terms.Closeness.RACK_REQUIRED);
    for (int i = 0; i < 3; i++) {
      queue.add(terms, Request.builder("r" + i).wholeGpus(2).models(Set.of("A100")).build());
    }
    add(queue, "small", NEARLINE, 1, 10);
    assertThat(started(queue.decide(0))).containsExactly("small");
    assertThat(queue.obstacle("ring").orElseThrow())
        .contains("members=3 gpus=6", "in one rack", "gpus=8, of which it may use 4");
    assertThat(queue.obstacle("small")).isEmpty();
    assertThat(queue.obstacle("unknown")).isEmpty();
  }

  @Test
  void itStartsOnceItHasChangedSoThatItFits() {
    FleetQueue queue = queue(SmallFleets.alike(2, 2));
    add(queue, "old", NEARLINE, 2, 10);
    queue.decide(0);
    Terms terms = Terms.of("pair", 2, NEARLINE, 10);
    Request free = Request.builder("p1").wholeGpus(2).nodes(Set.of("node-1")).build();
    queue.add(terms, Request.builder("p0").wholeGpus(2).nodes(Set.of("node-1")).build());
    queue.add(terms, free);
    queue.decide(1);
    assertThat(queue.obstacle("pair")).isPresent();
    queue.change("pair", Request.builder("p1").wholeGpus(2).nodes(Set.of("node-0")).build());
    queue.decide(2);
    assertThat(queue.obstacle("pair")).isEmpty();
    assertThat(queue.reservation()).map(Reservation::gang).contains("pair");
    queue.end("old");
    assertThat(started(queue.decide(10))).containsExactly("pair");
  }

  /** While the gang runs whose node it must share, there is no place for it at all. */
  @Test
  void whatDependsOnARunningOneIsHeldAPlaceBesideIt() {
    Fleet fleet = SmallFleets.alike(1, 3);
    FleetQueue queue = queue(fleet);
    add(queue, "a", NEARLINE, 1, 100);
    add(queue, "filler", NEARLINE, 2, 50);
    queue.decide(0);
    queue.add(
        Terms.of("b", 1, NEARLINE, 10),
        Request.builder("b").wholeGpus(2).sameNodeAs("a-0").build());
    queue.decide(1);
    assertThat(queue.reservation().orElseThrow().startS()).isEqualTo(50);
    queue.add(
        Terms.of("c", 1, NEARLINE, 10),
        Request.builder("c").wholeGpus(3).sameNodeAs("a-0").build());
    queue.end("b");
    queue.decide(2);
    assertThat(queue.obstacle("c")).isPresent();
    queue.end("a");
    assertThat(queue.obstacle("c")).as("it was found beside a place that is gone").isEmpty();
  }

  /** One search per gang, not one per decision. */
  @Test
  void anImpossibleOneIsSearchedForOnce() {
    Fleet fleet = SmallFleets.alike(2, 2);
    List<String> asked = new ArrayList<>();
    PlacementPolicy policy = policy(fleet);
    FleetQueue queue =
        new FleetQueue(
            fleet,
            new PlacementPolicy() {
              @Override
              public String name() {
                return policy.name();
              }

              @Override
              public Optional<Spot> choose(Fleet where, Request request) {
                asked.add(request.name());
                return policy.choose(where, request);
              }

              @Override
              public Optional<Spot> choose(Fleet where, Request request, IntPredicate allowed) {
                asked.add(request.name());
                return policy.choose(where, request, allowed);
              }
            });
    add(queue, "impossible", NEARLINE, 5, 10);
    queue.decide(0);
    asked.clear();
    for (int i = 1; i < 20; i++) {
      add(queue, "g" + i, NEARLINE, 4, 10);
      queue.decide(i);
      queue.end("g" + i);
    }
    assertThat(asked.stream().filter(name -> name.startsWith("impossible")).count())
        .as("a trial after each end of a gang, and no search")
        .isLessThanOrEqualTo(19 * 5);
  }
}
