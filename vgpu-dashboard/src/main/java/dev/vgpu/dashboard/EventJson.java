package dev.vgpu.dashboard;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuUsage;
import java.lang.reflect.RecordComponent;
import java.util.List;
import java.util.Locale;

/**
 * An event as JSON for the page. An event of an unknown kind has all that it says as text.
 * Immutable.
 *
 * @param kind the kind of event
 * @param text a JSON object, never empty
 */
record EventJson(String kind, String text) {
  private static final int LONGEST_TEXT = 1_000;

  static EventJson of(GpuEvent event) {
    String kind = event.getClass().getSimpleName();
    JsonText json = begin(kind, event.at().toEpochMilli(), event.virtualGpu());
    RecordComponent[] parts = event.getClass().getRecordComponents();
    for (RecordComponent part : parts == null ? new RecordComponent[0] : parts) {
      try {
        put(json, part.getName(), part.getAccessor().invoke(event));
      } catch (ReflectiveOperationException e) {
        json.put(part.getName(), "cannot be read: " + e);
      }
    }
    return new EventJson(kind, json.endObject().toString());
  }

  /** {@return an event that the dashboard itself observed} */
  static EventJson seen(String kind, long wallMs, String tenant, String reason) {
    JsonText json = begin(kind, wallMs, tenant).put("reason", cut(reason));
    return new EventJson(kind, json.endObject().toString());
  }

  private static JsonText begin(String kind, long wallMs, String tenant) {
    JsonText json = new JsonText();
    return json.object().put("kind", kind).put("at", wallMs).put("tenant", cut(tenant));
  }

  private static void put(JsonText json, String name, Object value) {
    if (value instanceof GpuId gpu) {
      json.put(name, cut(gpu.value()));
    } else if (value instanceof MemorySize size) {
      json.put(name + "_bytes", size.bytes());
    } else if (value instanceof Number number) {
      json.put(name, number.longValue());
    } else if (value instanceof Enum<?> constant) {
      json.put(name, constant.name().toLowerCase(Locale.ROOT));
    } else if (value instanceof List<?> list) {
      json.put(name, cut(list.toString()));
    } else if (value instanceof GpuUsage usage) {
      json.put("gpu_time_ms", usage.gpuTime().toMillis());
    } else if (value instanceof String text && !name.equals("virtualGpu")) {
      json.put(name, cut(text));
    }
  }

  static String cut(String text) {
    return text.length() <= LONGEST_TEXT ? text : text.substring(0, LONGEST_TEXT) + "…";
  }
}
