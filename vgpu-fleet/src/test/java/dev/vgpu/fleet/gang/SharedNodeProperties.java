package dev.vgpu.fleet.gang;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.PreemptionClass;
import java.util.Collection;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/**
 * Requests name others whose node they must share, in whatever order both come, end, are taken back
 * or evicted: none starts elsewhere, and nothing is left of them in the end.
 */
@Tag("property")
class SharedNodeProperties {
  private static final int STEPS = 40;

  @Property(tries = 300)
  void whoeverNamesAnotherStartsOnItsNode(@ForAll long seed) {
    Random random = new Random(seed);
    Fleet fleet = SmallFleets.alike(1 + random.nextInt(3), 1 + random.nextInt(3));
    FleetQueue queue =
        new FleetQueue(fleet, Policies.of("best-fit", fleet, Workload.of(List.of())));
    for (int step = 0; step < STEPS; step++) {
      switch (random.nextInt(6)) {
        case 0, 1, 2 -> add(queue, "gang-" + step, random);
        case 3 -> one(queue.running(), random).forEach(queue::end);
        case 4 -> one(queue.running(), random).forEach(queue::giveBack);
        default -> one(queue.waiting(), random).forEach(queue::end);
      }
      for (Decision decision : queue.decide(step)) {
        if (decision instanceof Decision.Start start) {
          start.placements().forEach(placement -> requireBeside(fleet, placement));
        }
      }
      SmallFleets.check(fleet);
    }
    List.copyOf(queue.running()).forEach(queue::end);
    queue.waiting().forEach(queue::end);
    queue.add(
        Terms.of("alone", 1, PreemptionClass.OFFLINE, 1),
        request("alone-0", "", 100, PreemptionClass.OFFLINE));
    assertThat(queue.decide(STEPS)).hasSize(1);
  }

  /** The other one may have been evicted since. */
  private static void requireBeside(Fleet fleet, Placement placement) {
    String name = placement.request().sameNodeAs();
    fleet
        .placement(name)
        .ifPresent(
            other ->
                assertThat(placement.node())
                    .as(placement.request() + " beside " + name)
                    .isEqualTo(other.node()));
  }

  private static List<String> one(Collection<String> names, Random random) {
    List<String> all = List.copyOf(names);
    return all.isEmpty() ? List.of() : List.of(all.get(random.nextInt(all.size())));
  }

  private static void add(FleetQueue queue, String gang, Random random) {
    int size = 1 + random.nextInt(2);
    PreemptionClass[] classes = PreemptionClass.values();
    PreemptionClass preemptionClass = classes[random.nextInt(classes.length)];
    Terms terms = Terms.of(gang, size, preemptionClass, 1 + random.nextInt(20));
    // Some gangs stay incomplete.
    for (int i = 0; i < size - random.nextInt(10) / 9; i++) {
      String other = "gang-" + random.nextInt(STEPS) + "-" + random.nextInt(2);
      Request request =
          request(
              gang + "-" + i,
              random.nextBoolean() ? other : "",
              10 * (1 + random.nextInt(10)),
              preemptionClass);
      queue.add(terms, request);
    }
  }

  private static Request request(
      String name, String other, int percent, PreemptionClass preemptionClass) {
    return Request.builder(name)
        .share(percent)
        .sameNodeAs(other.equals(name) ? "" : other)
        .preemptionClass(preemptionClass)
        .build();
  }
}
