package dev.vgpu.fleet.placement;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.NodeState;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.RandomRequests;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Shape;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.model.Spot;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.function.IntPredicate;
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
    return Policies.of(name, fleet, workload(random));
  }

  private static Workload workload(Random random) {
    List<Request> usual = new ArrayList<>();
    for (int i = 0; i < 30; i++) {
      usual.add(RandomRequests.draw("usual-" + i, random, PreemptionClass.NEARLINE));
    }
    return Workload.of(usual);
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

  /** Groups of nodes, and what is known of them already, make no difference. */
  @Property(tries = 150)
  void theChoiceIsTheFirstOfTheCheapestAllowedNodes(@ForAll long seed) {
    Random random = new Random(seed);
    Fleet fleet =
        random.nextBoolean()
            ? SmallFleets.mixed()
            : SmallFleets.alike(1 + random.nextInt(12), 1 + random.nextInt(4));
    Workload workload = workload(random);
    List<Scoring> all =
        List.of(
            new BestFitScoring(64_000, 8),
            new PackingScoring(random.nextBoolean()),
            new FragmentationScoring(workload),
            new StrandedScoring(workload),
            new PricedFragmentationScoring(workload));
    Scoring scoring = all.get(random.nextInt(all.size()));
    PlacementPolicy policy = new ScoredPolicy(scoring);
    List<Placement> placed = new ArrayList<>();
    for (int i = 0; i < STEPS; i++) {
      Request request = RandomRequests.draw("r" + i, random, PreemptionClass.NEARLINE);
      BitSet some = BitSet.valueOf(new long[] {random.nextLong()});
      Optional<Spot> any = policy.choose(fleet, request);
      assertThat(any).isEqualTo(policy.choose(fleet, request, node -> true));
      assertThat(any).isEqualTo(cheapest(scoring, fleet, request, node -> true));
      assertThat(policy.choose(fleet, request, some::get))
          .isEqualTo(cheapest(scoring, fleet, request, some::get));
      any.ifPresent(at -> placed.add(fleet.place(request, at)));
      if (!placed.isEmpty() && random.nextInt(3) == 0) {
        fleet.release(placed.remove(random.nextInt(placed.size())));
      }
    }
  }

  private static Optional<Spot> cheapest(
      Scoring scoring, Fleet fleet, Request request, IntPredicate allowed) {
    Spot best = null;
    float least = Float.POSITIVE_INFINITY;
    for (int node = 0; node < fleet.nodes().size(); node++) {
      if (allowed.test(node) && fleet.state(node).fits(request.shape())) {
        int slot = cheapestSlot(scoring, fleet.state(node), request.shape());
        float cost = cost(scoring, fleet, fleet.state(node), request.shape(), slot);
        if (cost < least) {
          least = cost;
          best = new Spot(node, slot);
        }
      }
    }
    return Optional.ofNullable(best);
  }

  private static int cheapestSlot(Scoring scoring, NodeState before, Shape shape) {
    int first = shape.gpus() == 0 ? 0 : before.nextSlot(shape, -1);
    int best = first;
    for (int slot = first; shape.gpus() > 0 && slot >= 0; slot = before.nextSlot(shape, slot)) {
      if (scoring.cost(before, before.after(shape, slot), shape)
          < scoring.cost(before, before.after(shape, best), shape)) {
        best = slot;
      }
    }
    return best;
  }

  private static float cost(Scoring scoring, Fleet fleet, NodeState before, Shape shape, int slot) {
    NodeState after = before.after(shape, slot);
    float cost = scoring.cost(before, after, shape);
    for (long bits = scoring.lost(before, after); bits != 0; bits &= bits - 1) {
      cost += scoring.prices(fleet)[Long.numberOfTrailingZeros(bits)];
    }
    float step = scoring.step();
    return step > 0 ? (float) Math.rint(cost / step) * step : cost;
  }

  private static List<NodeState> states(Fleet fleet) {
    return IntStream.range(0, fleet.nodes().size()).mapToObj(fleet::state).toList();
  }
}
