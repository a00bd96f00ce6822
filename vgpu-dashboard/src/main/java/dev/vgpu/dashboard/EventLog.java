package dev.vgpu.dashboard;

import dev.vgpu.watch.GpuEvent;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The last {@value #KEPT} events. When the log is full, the oldest preemption or change of sharing
 * is dropped, or otherwise the oldest event. Safe for use by several threads.
 */
final class EventLog {
  private static final int KEPT = 500;

  /** The most frequent events in one tick: the newest ones. */
  private static final int MOST_AT_ONCE = 100;

  private record Entry(long number, EventJson event) {
    /** Frequent events are dropped first, so that they displace no refusal and no death. */
    boolean isCommon() {
      return event.kind().equals("Preempted") || event.kind().equals("SharingChanged");
    }

    /** {@return the event's JSON with its number as the first member} */
    String json() {
      return "{\"number\":" + number + "," + event.text().substring(1);
    }
  }

  private final Deque<Entry> entries = new ArrayDeque<>();
  private final Set<EventJson> known = new HashSet<>();
  private long lastNumber;
  private long toldNumber;

  /** Adds the events of the past. The listener may deliver some of them again. */
  synchronized void begin(List<GpuEvent> recent) {
    for (GpuEvent event : recent) {
      EventJson json = EventJson.of(event);
      known.add(json);
      append(json);
    }
    toldNumber = lastNumber;
  }

  synchronized void add(GpuEvent event) {
    EventJson json = EventJson.of(event);
    if (!known.remove(json)) {
      append(json);
    }
  }

  synchronized void add(EventJson event) {
    append(event);
  }

  private void append(EventJson event) {
    entries.addLast(new Entry(++lastNumber, event));
    if (entries.size() > KEPT) {
      entries.remove(
          entries.stream().filter(Entry::isCommon).findFirst().orElseGet(entries::getFirst));
    }
  }

  /** Adds the events since the last call, and how many more were left out. */
  synchronized void putNew(JsonText json) {
    List<Entry> fresh = entries.stream().filter(entry -> entry.number() > toldNumber).toList();
    int tooMany = fresh.size() - MOST_AT_ONCE;
    long leftOut = lastNumber - toldNumber;
    JsonText list = new JsonText();
    for (Entry entry : fresh) {
      if (tooMany > 0 && entry.isCommon()) {
        tooMany--;
      } else {
        list.json(entry.json());
        leftOut--;
      }
    }
    json.object("events").put("left_out", leftOut).putJson("list", "[" + list + "]").endObject();
    toldNumber = lastNumber;
  }

  /** Adds all kept events that were already told. */
  synchronized void putTold(JsonText json) {
    json.array("events");
    for (Entry entry : entries) {
      if (entry.number() <= toldNumber) {
        json.json(entry.json());
      }
    }
    json.endArray();
  }
}
