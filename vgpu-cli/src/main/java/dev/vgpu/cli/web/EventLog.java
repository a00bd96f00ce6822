package dev.vgpu.cli.web;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuEvent;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The last {@value #KEPT} events. When the log is full, the oldest preemption is dropped, or
 * otherwise the oldest event. Safe for use by several threads.
 */
final class EventLog {
  private static final int KEPT = 500;

  /** The most events in one tick: the newest ones. */
  private static final int MOST_AT_ONCE = 100;

  private final Deque<ObjectNode> events = new ArrayDeque<>();
  private final Set<String> known = new HashSet<>();
  private long lastNumber;
  private long toldNumber;

  /** Adds the events of the past. The listener may deliver some of them again. */
  synchronized void begin(List<GpuEvent> recent) {
    for (GpuEvent event : recent) {
      ObjectNode json = EventJson.of(event);
      known.add(json.toString());
      append(json);
    }
    toldNumber = lastNumber;
  }

  synchronized void add(GpuEvent event) {
    ObjectNode json = EventJson.of(event);
    if (!known.remove(json.toString())) {
      append(json);
    }
  }

  synchronized void add(ObjectNode json) {
    append(json);
  }

  private void append(ObjectNode json) {
    events.addLast(json.put("number", ++lastNumber));
    if (events.size() > KEPT) {
      events.remove(
          events.stream().filter(EventLog::isCommon).findFirst().orElseGet(events::getFirst));
    }
  }

  /** Preemptions are frequent. They are dropped first, to displace no refusal and no death. */
  private static boolean isCommon(ObjectNode event) {
    return event.path("kind").asText().equals("Preempted");
  }

  /** {@return the events since the last call, and how many more were left out} */
  synchronized ObjectNode takeNew() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    long from = Math.max(toldNumber, lastNumber - MOST_AT_ONCE);
    json.put("left_out", from - toldNumber);
    ArrayNode list = json.putArray("list");
    for (ObjectNode event : events) {
      if (event.path("number").asLong() > from) {
        list.add(event);
      }
    }
    toldNumber = lastNumber;
    return json;
  }

  /** {@return all kept events that were already taken} */
  synchronized ArrayNode told() {
    ArrayNode list = JsonNodeFactory.instance.arrayNode();
    for (ObjectNode event : events) {
      if (event.path("number").asLong() <= toldNumber) {
        list.add(event);
      }
    }
    return list;
  }
}
