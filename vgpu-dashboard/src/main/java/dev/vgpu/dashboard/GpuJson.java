package dev.vgpu.dashboard;

import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;

/** A GPU as JSON for the page. Unknown values are null. */
final class GpuJson {
  private GpuJson() {}

  static void put(
      JsonText json, PhysicalGpu gpu, Optional<GpuState> state, Optional<GpuReading> reading) {
    json.put("id", gpu.id().value())
        .put("model", gpu.model())
        .put("provider", gpu.provider())
        .put("memory", gpu.memory().bytes())
        .put("memory_usable", gpu.usableMemory().bytes())
        .put("unusable_as_whole", gpu.unusableAsWhole().orElse(null));
    GpuHealth health = health(state, reading);
    json.put("health", word(health)).put("health_reason", healthReason(health, state, reading));
    state.ifPresent(known -> put(json, known));
    reading.ifPresent(known -> put(json, known));
  }

  /** The worse of the health read by this process and the health known to the seat's holder. */
  static GpuHealth health(Optional<GpuState> state, Optional<GpuReading> reading) {
    GpuHealth seen = state.map(GpuState::health).orElse(GpuHealth.HEALTHY);
    GpuHealth read = reading.map(GpuReading::health).orElse(GpuHealth.HEALTHY);
    return List.of(GpuHealth.LOST, GpuHealth.DEGRADED, GpuHealth.HEALTHY).stream()
        .filter(health -> health == seen || health == read)
        .findFirst()
        .orElseThrow();
  }

  private static String healthReason(
      GpuHealth health, Optional<GpuState> state, Optional<GpuReading> reading) {
    return state
        .filter(known -> known.health() == health)
        .map(GpuState::healthReason)
        .filter(reason -> !reason.isEmpty())
        .or(() -> reading.map(GpuReading::healthReason))
        .orElse("");
  }

  private static void put(JsonText json, GpuState state) {
    json.put("mode", word(state.mode()))
        .put("mode_reason", state.reason())
        .put("holder", state.holder().orElse(null))
        .put("turn_ms", state.turnLength().toNanos() / 1e6)
        .put("switches", state.switches())
        .put("memory_free", state.memoryFree().bytes())
        .put("memory_low", state.memoryLowWatermark().bytes())
        .put("memory_high", state.memoryHighWatermark().bytes());
    put(json, "held_back", state.heldBack());
    put(json, "suspended", state.suspended());
  }

  private static void put(JsonText json, GpuReading reading) {
    json.object("reading");
    putBytes(json, "memory_used", reading.memoryUsed());
    putBytes(json, "memory_reserved", reading.memoryReserved());
    put(json, "busy", reading.busyPercent());
    put(json, "temperature", reading.temperatureCelsius());
    TenantTrack.put(json, "power", reading.powerWatts());
    TenantTrack.put(json, "power_limit", reading.powerLimitWatts());
    json.endObject();
  }

  private static void putBytes(JsonText json, String name, Optional<MemorySize> value) {
    if (value.isPresent()) {
      json.put(name, value.get().bytes());
    } else {
      json.putNull(name);
    }
  }

  static void put(JsonText json, String name, List<String> values) {
    json.array(name);
    values.forEach(json::add);
    json.endArray();
  }

  private static void put(JsonText json, String name, OptionalInt value) {
    if (value.isPresent()) {
      json.put(name, value.getAsInt());
    } else {
      json.putNull(name);
    }
  }

  static String word(Enum<?> constant) {
    return constant.name().toLowerCase(Locale.ROOT);
  }
}
