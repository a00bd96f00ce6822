package dev.vgpu.cli.text;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuReading.NvLink;
import dev.vgpu.watch.GpuState;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** The readings and the health of a GPU, for people and for programs. */
public final class DeviceTexts {
  /** Shown if the only device is this machine's CPU. */
  public static final String HOST_EXPLAINED =
      "No GPU provider found a GPU: the device 'host' stands for this machine's CPU.";

  private static final String HOST = "host";
  private static final double BYTES_PER_GIB = 1L << 30;

  private DeviceTexts() {}

  /** {@return whether this machine's CPU is the only device} */
  public static boolean onlyHost(GpuPool pool) {
    return pool.gpus().stream().allMatch(gpu -> gpu.id().value().equals(HOST));
  }

  /** {@return a size in GiB, with one decimal} */
  public static String gibibytes(MemorySize size) {
    return String.format(Locale.ROOT, "%.1f GiB", size.bytes() / BYTES_PER_GIB);
  }

  /** The worse of the health read by this process and the health known to the seat's holder. */
  public static GpuHealth health(@Nullable GpuReading reading, @Nullable GpuState state) {
    GpuHealth seen = state == null ? GpuHealth.HEALTHY : state.health();
    GpuHealth read = reading == null ? GpuHealth.HEALTHY : reading.health();
    return rank(read) >= rank(seen) ? read : seen;
  }

  private static int rank(GpuHealth health) {
    return switch (health) {
      case HEALTHY -> 0;
      case DEGRADED -> 1;
      case LOST -> 2;
    };
  }

  /** Why a GPU is not healthy; empty if it is. */
  static String healthReason(@Nullable GpuReading reading, @Nullable GpuState state) {
    String of =
        reading != null && reading.health() == health(reading, state) ? reading.healthReason() : "";
    return of.isEmpty() && state != null ? state.healthReason() : of;
  }

  static String word(GpuHealth health) {
    return health.name().toLowerCase(Locale.ROOT);
  }

  /** The problem of a GPU, such as {@code lost: GPU is lost}; empty if it is healthy. */
  public static Optional<String> trouble(@Nullable GpuReading reading, @Nullable GpuState state) {
    GpuHealth health = health(reading, state);
    return health == GpuHealth.HEALTHY
        ? Optional.empty()
        : Optional.of(word(health) + ": " + healthReason(reading, state));
  }

  /** Utilisation, temperature and similar readings in one line; empty if nothing is known. */
  public static String load(GpuReading reading) {
    List<String> parts = new ArrayList<>();
    put(parts, "busy %d %%", reading.busyPercent());
    put(parts, "%d °C", reading.temperatureCelsius());
    power(reading).ifPresent(parts::add);
    put(parts, "%d MHz", reading.clockMhz());
    if (reading.encoderPercent().orElse(0) + reading.decoderPercent().orElse(0) > 0) {
      put(parts, "encoder %d %%", reading.encoderPercent());
      put(parts, "decoder %d %%", reading.decoderPercent());
    }
    return String.join(", ", parts);
  }

  private static Optional<String> power(GpuReading reading) {
    OptionalDouble watts = reading.powerWatts();
    if (watts.isEmpty()) {
      return Optional.empty();
    }
    OptionalDouble limit = reading.powerLimitWatts();
    return Optional.of(
        limit.isPresent()
            ? String.format(Locale.ROOT, "%.0f of %.0f W", watts.getAsDouble(), limit.getAsDouble())
            : String.format(Locale.ROOT, "%.0f W", watts.getAsDouble()));
  }

  private static void put(List<String> parts, String format, OptionalInt value) {
    value.ifPresent(number -> parts.add(String.format(Locale.ROOT, format, number)));
  }

  /** The use of its memory. */
  public static Optional<String> memory(GpuReading reading) {
    if (reading.memoryUsed().isEmpty() || reading.memoryTotal().isEmpty()) {
      return Optional.empty();
    }
    long reserved = reading.memoryReserved().map(MemorySize::bytes).orElse(0L);
    return Optional.of(
        gibibytes(reading.memoryUsed().get())
            + " of "
            + gibibytes(reading.memoryTotal().get())
            + " used"
            + (reserved == 0
                ? ""
                : ", " + gibibytes(reading.memoryReserved().get()) + " reserved"));
  }

  /** The use of its memory, in a shorter form. */
  public static Optional<String> shortMemory(GpuReading reading) {
    return reading
        .memoryUsed()
        .flatMap(
            used ->
                reading
                    .memoryTotal()
                    .map(
                        total ->
                            gibibytes(used).replace(" GiB", "")
                                + " of "
                                + gibibytes(total)
                                + " used"));
  }

  /** Its main properties, in one line. */
  public static String properties(GpuReading reading) {
    Map<String, String> all = reading.properties();
    List<String> parts = new ArrayList<>();
    if (all.containsKey("architecture")) {
      parts.add(all.get("architecture") + " " + all.getOrDefault("compute_capability", ""));
    }
    put(parts, all, "driver_version", "driver ");
    put(parts, all, "cuda_version", "CUDA ");
    put(parts, all, "pci", "PCI ");
    put(parts, all, "numa_node", "NUMA ");
    return String.join(", ", parts);
  }

  /** The modes that differ from the default. */
  public static String modes(GpuReading reading) {
    Map<String, String> all = reading.properties();
    List<String> parts = new ArrayList<>();
    put(parts, all, "memory", "memory: ");
    put(parts, all, "mig_mode", "MIG ");
    put(parts, all, "mig_pending", "MIG after a reset ");
    putUnless(parts, all, "compute_mode", "default", "compute mode ");
    putUnless(parts, all, "persistence_mode", "on", "persistence ");
    putUnless(parts, all, "virtualization", "none", "virtualization: ");
    put(parts, all, "sriov", "SR-IOV vGPUs: ");
    long uncorrected = reading.eccUncorrected().orElse(0);
    if (reading.eccCorrected().orElse(0) + uncorrected > 0) {
      parts.add(
          "memory errors "
              + reading.eccCorrected().orElse(0)
              + " corrected, "
              + uncorrected
              + " not");
    }
    return String.join(", ", parts);
  }

  private static void put(List<String> parts, Map<String, String> all, String name, String words) {
    if (all.containsKey(name)) {
      parts.add(words + all.get(name));
    }
  }

  private static void putUnless(
      List<String> parts, Map<String, String> all, String name, String usual, String words) {
    if (!usual.equals(all.get(name))) {
      put(parts, all, name, words);
    }
  }

  /** The NVLinks, such as {@code NVLink 11 of 12 up: 4 to GPU-1, …}; empty if there are none. */
  public static String nvLinks(GpuReading reading) {
    if (reading.nvLinks().isEmpty()) {
      return "";
    }
    Map<String, Integer> ends = new LinkedHashMap<>();
    int active = 0;
    for (NvLink link : reading.nvLinks()) {
      if (link.isActive()) {
        active++;
        ends.merge(link.peer().map(DeviceTexts::shortened).orElse("?"), 1, Integer::sum);
      }
    }
    List<String> parts = new ArrayList<>();
    ends.forEach((end, count) -> parts.add(count + " to " + end));
    return "NVLink "
        + active
        + " of "
        + reading.nvLinks().size()
        + " up"
        + (parts.isEmpty() ? "" : ": " + String.join(", ", parts));
  }

  private static String shortened(String peer) {
    return peer.startsWith("GPU-") && peer.length() > 12 ? peer.substring(0, 12) : peer;
  }

  /** Adds all known readings. */
  public static void put(ObjectNode json, @Nullable GpuReading reading, @Nullable GpuState state) {
    json.put("health", word(health(reading, state)));
    json.put("health_reason", healthReason(reading, state));
    if (reading == null) {
      return;
    }
    reading.memoryUsed().ifPresent(size -> json.put("memory_used_bytes", size.bytes()));
    reading.memoryReserved().ifPresent(size -> json.put("memory_reserved_bytes", size.bytes()));
    put(json, "busy_percent", reading.busyPercent());
    put(json, "memory_busy_percent", reading.memoryBusyPercent());
    put(json, "encoder_percent", reading.encoderPercent());
    put(json, "decoder_percent", reading.decoderPercent());
    put(json, "temperature_celsius", reading.temperatureCelsius());
    reading.powerWatts().ifPresent(watts -> json.put("power_watts", watts));
    reading.powerLimitWatts().ifPresent(watts -> json.put("power_limit_watts", watts));
    put(json, "clock_mhz", reading.clockMhz());
    put(json, "memory_clock_mhz", reading.memoryClockMhz());
    reading.eccCorrected().ifPresent(count -> json.put("ecc_corrected", count));
    reading.eccUncorrected().ifPresent(count -> json.put("ecc_uncorrected", count));
    ObjectNode properties = json.putObject("properties");
    reading.properties().forEach(properties::put);
    json.putArray("nvlinks");
    for (NvLink link : reading.nvLinks()) {
      json.withArray("nvlinks")
          .addObject()
          .put("link", link.number())
          .put("active", link.isActive())
          .put("peer", link.peer().orElse(null));
    }
    json.putArray("processes");
    for (GpuReading.GpuProcess process : reading.processes()) {
      ObjectNode row = json.withArray("processes").addObject().put("pid", process.pid());
      process.memory().ifPresent(size -> row.put("memory_bytes", size.bytes()));
      put(row, "percent", process.percent());
    }
  }

  private static void put(ObjectNode json, String name, OptionalInt value) {
    value.ifPresent(number -> json.put(name, number));
  }
}
