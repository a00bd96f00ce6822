package dev.vgpu.cli.web;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuId;
import dev.vgpu.GpuUsage;
import dev.vgpu.MemorySize;
import java.lang.reflect.RecordComponent;
import java.util.List;
import java.util.Locale;

/** Events as JSON for the page. An event of an unknown kind has all that it says as text. */
final class EventJson {
  private static final int LONGEST_TEXT = 1_000;

  private EventJson() {}

  static ObjectNode of(GpuEvent event) {
    ObjectNode json = of(event.getClass().getSimpleName(), event.at().toEpochMilli());
    json.put("tenant", cut(event.virtualGpu()));
    RecordComponent[] parts = event.getClass().getRecordComponents();
    for (RecordComponent part : parts == null ? new RecordComponent[0] : parts) {
      try {
        put(json, part.getName(), part.getAccessor().invoke(event));
      } catch (ReflectiveOperationException e) {
        json.put(part.getName(), "cannot be read: " + e);
      }
    }
    return json;
  }

  /** {@return an event that the dashboard itself observed} */
  static ObjectNode seen(String kind, long wallMs, String tenant, String reason) {
    return of(kind, wallMs).put("tenant", cut(tenant)).put("reason", cut(reason));
  }

  private static ObjectNode of(String kind, long wallMs) {
    return JsonNodeFactory.instance.objectNode().put("kind", kind).put("at", wallMs);
  }

  private static void put(ObjectNode json, String name, Object value) {
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
