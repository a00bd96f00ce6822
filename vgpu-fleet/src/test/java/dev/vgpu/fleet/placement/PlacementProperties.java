package dev.vgpu.fleet.placement;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.PreemptionClass;
import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.RandomRequests;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.model.Spot;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.stream.IntStream;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.From;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;

/** What holds for every policy, under any sequence of arrivals and ends. */
@Tag("property")
class PlacementProperties {
  private static final int STEPS = 60;

  @Provide
  Arbitrary<String> policies() {
    return Arbitraries.of(Policies.names());
  }

  private static PlacementPolicy policy(String name, Fleet fleet, Random random) {
    List<Request> usual = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      usual.add(RandomRequests.draw("usual-" + i, random, PreemptionClass.NEARLINE));
    }
    return Policies.of(name, fleet, Workload.of(usual));
  }

  @Property(tries = 150)
  void noGpuHoldsMoreThanItHas(@ForAll long seed, @ForAll @From("policies") String name) {
    Random random = new Random(seed);
    Fleet fleet = SmallFleets.mixed();
    PlacementPolicy policy = policy(name, fleet, random);
    List<Placement> placed = new ArrayList<>();
    for (int i = 0; i < STEPS; i++) {
      PreemptionClass[] classes = PreemptionClass.values();
      Request request =
          RandomRequests.draw("r" + i, random, classes[random.nextInt(classes.length)]);
      policy.settle(fleet);
      Optional<Spot> spot = policy.choose(fleet, request);
      boolean fitsSomewhere =
          IntStream.range(0, fleet.nodes().size())
              .anyMatch(node -> fleet.state(node).fits(request.shape()));
      assertThat(spot.isPresent()).isEqualTo(fitsSomewhere);
      spot.ifPresent(at -> placed.add(fleet.place(request, at)));
      SmallFleets.check(fleet);
      if (!placed.isEmpty() && random.nextInt(3) == 0) {
        fleet.release(placed.remove(random.nextInt(placed.size())));
        SmallFleets.check(fleet);
      }
    }
    placed.forEach(fleet::release);
    assertThat(fleet.idlePercent()).isEqualTo(fleet.capacityPercent());
  }

  @Property(tries = 150)
  void whatIsUndoneLeavesEverythingAsItWas(
      @ForAll long seed, @ForAll @From("policies") String name) {
    Random random = new Random(seed);
    Fleet fleet = SmallFleets.mixed();
    PlacementPolicy policy = policy(name, fleet, random);
    for (int i = 0; i < STEPS; i++) {
      List<NodeState> before = states(fleet);
      int count = fleet.placements().size();
      List<Placement> tried = new ArrayList<>();
      for (int k = random.nextInt(4); k >= 0; k--) {
        Request request = RandomRequests.draw("t" + i + "-" + k, random, PreemptionClass.ONLINE);
        policy.choose(fleet, request).ifPresent(at -> tried.add(fleet.place(request, at)));
      }
      for (int k = tried.size() - 1; k >= 0; k--) {
        fleet.undo(tried.get(k));
      }
      assertThat(states(fleet)).isEqualTo(before);
      assertThat(fleet.placements()).hasSize(count);
      tried.forEach(one -> assertThat(fleet.restore(one)).isTrue());
      SmallFleets.check(fleet);
    }
  }

  private static List<NodeState> states(Fleet fleet) {
    return IntStream.range(0, fleet.nodes().size()).mapToObj(fleet::state).toList();
  }
}
