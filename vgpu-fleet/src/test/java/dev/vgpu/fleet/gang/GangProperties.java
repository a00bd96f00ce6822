package dev.vgpu.fleet.gang;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.fleet.model.Fleet;
import dev.vgpu.fleet.model.Placement;
import dev.vgpu.fleet.model.RandomRequests;
import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.SmallFleets;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.placement.Workload;
import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;

/** What holds for gangs under any sequence of arrivals, ends and evictions. */
@Tag("property")
class GangProperties {
  private static final int STEPS = 40;

  private final Map<String, List<String>> members = new HashMap<>();

  @Property(tries = 400)
  void allMembersArePlacedOrNone(@ForAll long seed) {
    members.clear();
    Random random = new Random(seed);
    Fleet fleet = SmallFleets.mixed();
    List<Request> usual = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      usual.add(RandomRequests.draw("usual-" + i, random, PreemptionClass.NEARLINE));
    }
    FleetQueue queue = new FleetQueue(fleet, Policies.of(Policies.OURS, fleet, Workload.of(usual)));
    Map<String, PreemptionClass> classes = new HashMap<>();
    for (int step = 0; step < STEPS; step++) {
      if (random.nextInt(3) > 0) {
        add(queue, "gang-" + step, random, classes);
      } else {
        List<String> running = new ArrayList<>(queue.running());
        if (!running.isEmpty()) {
          queue.end(running.get(random.nextInt(running.size())));
        }
      }
      check(queue.decide(step), queue, fleet, classes);
    }
    List.copyOf(queue.waiting()).forEach(queue::end);
    List.copyOf(queue.running()).forEach(queue::end);
    assertThat(fleet.idlePercent()).isEqualTo(fleet.capacityPercent());
    assertThat(fleet.placements()).isEmpty();
  }

  private void add(
      FleetQueue queue, String gang, Random random, Map<String, PreemptionClass> classes) {
    PreemptionClass[] kinds = PreemptionClass.values();
    PreemptionClass preemptionClass = kinds[random.nextInt(kinds.length)];
    int size = 1 + random.nextInt(4);
    Terms.Closeness[] all = Terms.Closeness.values();
    Terms terms =
        new Terms(
            gang, size, preemptionClass, 1 + random.nextInt(20), all[random.nextInt(all.length)]);
    for (int i = 0; i < size; i++) {
      Request member = RandomRequests.draw(gang + "-" + i, random, preemptionClass);
      try {
        queue.add(terms, member);
        classes.put(gang, preemptionClass);
        members.computeIfAbsent(gang, key -> new ArrayList<>()).add(member.name());
      } catch (IllegalArgumentException e) {
        assertThat(e).hasMessageContaining("fits no node");
        queue.end(gang);
        members.remove(gang);
        return;
      }
    }
  }

  private void check(
      List<Decision> decisions,
      FleetQueue queue,
      Fleet fleet,
      Map<String, PreemptionClass> classes) {
    SmallFleets.check(fleet);
    Set<String> placed = new HashSet<>();
    for (Placement placement : fleet.placements().values()) {
      placed.add(placement.request().name());
    }
    Set<String> expected = new HashSet<>();
    queue.running().forEach(gang -> expected.addAll(members.get(gang)));
    assertThat(placed).isEqualTo(expected);
    assertThat(queue.waiting().stream().filter(queue.running()::contains)).isEmpty();
    for (Decision decision : decisions) {
      if (decision instanceof Decision.Evict evict) {
        assertThat(classes.get(evict.gang())).isEqualTo(PreemptionClass.OFFLINE);
        assertThat(classes.get(evict.forGang())).isNotEqualTo(PreemptionClass.OFFLINE);
        assertThat(decisions)
            .anyMatch(one -> one instanceof Decision.Start && one.gang().equals(evict.forGang()));
      }
    }
  }
}
