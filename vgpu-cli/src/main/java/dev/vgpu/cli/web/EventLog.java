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
 * What happened last: {@value #KEPT} events, of preemptions the newest. Safe for use by several
 * threads.
 */
final class EventLog {
  private static final int KEPT = 500;

  /** What one tick tells at most; of more, the newest. */
  private static final int MOST_AT_ONCE = 100;

  private final Deque<ObjectNode> events = new ArrayDeque<>();
  private final Set<String> known = new HashSet<>();
  private long lastNumber;
  private long toldNumber;

  /** Takes what happened before; the listener tells some of that again. */
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

  /** Preemptions are many: they go first, so that they hide no refusal and no death. */
  private static boolean isCommon(ObjectNode event) {
    return event.path("kind").asText().equals("Preempted");
  }

  /** {@return what came since this was asked last; with how many more there were} */
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

  /** {@return all that is kept and was told} */
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
