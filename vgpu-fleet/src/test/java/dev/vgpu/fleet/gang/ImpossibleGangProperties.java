package dev.vgpu.fleet.gang;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.RandomRequests;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/**
 * Gangs that can never fit are among others. None of them starts, has places reserved or evicts
 * another gang, and the first of the others that must wait has the reservation.
 */
@Tag("property")
class ImpossibleGangProperties {
  private static final int STEPS = 40;
  private static final String IMPOSSIBLE = "impossible";

  private FleetQueue queue = queue();

  private static FleetQueue queue() {
    Fleet fleet = SmallFleets.mixed();
    Random random = new Random(1);
    List<Request> usual = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      usual.add(RandomRequests.draw("usual-" + i, random, PreemptionClass.NEARLINE));
    }
    return new FleetQueue(fleet, Policies.of("fgd", fleet, Workload.of(usual)));
  }

  @Property(tries = 300)
  void impossibleGangsHoldNobodyUp(@ForAll long seed) {
    queue = queue();
    Random random = new Random(seed);
    for (int step = 0; step < STEPS; step++) {
      switch (random.nextInt(5)) {
        case 0, 1 -> addPossible("gang-" + step, random);
        case 2 -> addImpossible(IMPOSSIBLE + "-" + step, random);
        case 3 -> end(random);
        default -> endImpossible(random);
      }
      List<Decision> decisions = queue.decide(step);
      for (Decision decision : decisions) {
        String beneficiary =
            decision instanceof Decision.Evict evict ? evict.forGang() : decision.gang();
        assertThat(beneficiary).doesNotStartWith(IMPOSSIBLE);
      }
      assertThat(queue.reservation().map(Reservation::gang).orElse(""))
          .doesNotStartWith(IMPOSSIBLE);
      checkReasons(decisions);
    }
  }

  /** Whoever is before the holder of the reservation cannot have one, and there is a reason. */
  private void checkReasons(List<Decision> decisions) {
    Set<String> evicted = new HashSet<>();
    decisions.stream()
        .filter(Decision.Evict.class::isInstance)
        .map(Decision::gang)
        .forEach(evicted::add);
    String holder = queue.reservation().map(Reservation::gang).orElse("");
    for (String gang : queue.waiting()) {
      if (gang.equals(holder)) {
        return;
      }
      assertThat(evicted.contains(gang) || queue.obstacle(gang).isPresent()).as(gang).isTrue();
    }
  }

  private static PreemptionClass anyClass(Random random) {
    PreemptionClass[] kinds = PreemptionClass.values();
    return kinds[random.nextInt(kinds.length)];
  }

  private void addPossible(String gang, Random random) {
    PreemptionClass preemptionClass = anyClass(random);
    int size = 1 + random.nextInt(3);
    Terms terms = Terms.of(gang, size, preemptionClass, 1 + random.nextInt(20));
    for (int i = 0; i < size; i++) {
      Request member = RandomRequests.draw(gang + "-" + i, random, preemptionClass);
      if (!isAdded(terms, member)) {
        queue.end(gang);
        return;
      }
    }
  }

  private boolean isAdded(Terms terms, Request member) {
    try {
      queue.add(terms, member);
      return true;
    } catch (IllegalArgumentException e) {
      assertThat(e).hasMessageContaining("fits no node");
      return false;
    }
  }

  /** Each member fits a node of {@link SmallFleets#mixed}, which has 14 undivided GPUs. */
  private void addImpossible(String gang, Random random) {
    PreemptionClass preemptionClass = anyClass(random);
    int kind = random.nextInt(5);
    int size = List.of(15, 2, 3, 6, 15).get(kind);
    Terms terms = Terms.of(gang, size, preemptionClass, 1 + random.nextInt(20));
    for (int i = 0; i < size; i++) {
      Request.Builder member = Request.builder(gang + "-" + i).preemptionClass(preemptionClass);
      switch (kind) {
        case 0 -> member.wholeGpus(1);
        case 1 -> member.wholeGpus(8);
        case 2 -> member.wholeGpus(1).models(Set.of("T4"));
        case 3 -> member.share(5).spread(gang);
        default -> member.share(60);
      }
      queue.add(terms, member.build());
    }
  }

  private void end(Random random) {
    List<String> running = List.copyOf(queue.running());
    if (!running.isEmpty()) {
      String gang = running.get(random.nextInt(running.size()));
      queue.end(gang);
    }
  }

  private void endImpossible(Random random) {
    List<String> all =
        queue.waiting().stream().filter(gang -> gang.startsWith(IMPOSSIBLE)).toList();
    if (!all.isEmpty()) {
      queue.end(all.get(random.nextInt(all.size())));
    }
  }
}
