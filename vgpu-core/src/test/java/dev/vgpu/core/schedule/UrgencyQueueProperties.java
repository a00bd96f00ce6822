package dev.vgpu.core.schedule;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.PreemptionClass;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

@Tag("property")
class UrgencyQueueProperties {
  private static final class Item extends UrgencyQueue.Node<Item> {
    final int number;
    int overtaken;

    Item(PreemptionClass preemptionClass, int number) {
      super(preemptionClass);
      this.number = number;
    }
  }

  @Property
  void servesInOrderOfClassThenArrival(
      @ForAll @Size(max = 60) List<PreemptionClass> arrivals,
      @ForAll @Size(max = 20) List<@IntRange(max = 59) Integer> leaving) {
    UrgencyQueue<Item> queue = new UrgencyQueue<>();
    List<Item> expected = new ArrayList<>();
    for (PreemptionClass preemptionClass : arrivals) {
      Item item = new Item(preemptionClass, expected.size());
      expected.add(item);
      queue.add(item);
    }
    for (int index : leaving) {
      if (index < expected.size()) {
        assertThat(queue.remove(expected.get(index))).isTrue();
        assertThat(queue.remove(expected.remove(index))).isFalse();
      }
    }
    assertThat(queue.size()).isEqualTo(expected.size());
    expected.sort(
        Comparator.<Item, PreemptionClass>comparing(UrgencyQueue.Node::preemptionClass)
            .thenComparing(item -> item.number));
    List<Item> served = new ArrayList<>();
    for (Item item = queue.poll(); item != null; item = queue.poll()) {
      served.add(item);
    }
    assertThat(served).isEqualTo(expected);
    assertThat(queue.isEmpty()).isTrue();
  }

  @Property
  void theFirstOfAClassIsNotOvertakenForEver(
      @ForAll @Size(min = 300, max = 600) List<PreemptionClass> arrivals) {
    UrgencyQueue<Item> queue = new UrgencyQueue<>();
    List<Item> waiting = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      enter(queue, waiting, PreemptionClass.ONLINE);
    }
    for (PreemptionClass preemptionClass : arrivals) {
      enter(queue, waiting, preemptionClass);
      Item served = queue.poll();
      waiting.remove(served);
      for (PreemptionClass lower : PreemptionClass.values()) {
        waiting.stream()
            .filter(item -> item.preemptionClass() == lower)
            .findFirst()
            .filter(first -> served.preemptionClass().isMoreUrgentThan(lower))
            .filter(first -> first.number < served.number)
            .ifPresent(first -> first.overtaken++);
      }
      assertThat(waiting).allMatch(item -> item.overtaken <= 2 * UrgencyQueue.MOST_OVERTAKES);
    }
  }

  private int entered;

  private void enter(
      UrgencyQueue<Item> queue, List<Item> waiting, PreemptionClass preemptionClass) {
    Item item = new Item(preemptionClass, entered++);
    queue.add(item);
    waiting.add(item);
  }
}
