package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuReading;
import dev.vgpu.GpuState;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.k8s.Driver;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The GPUs of a node as DRA devices. */
final class NodeDevices {
  /** The taint of an unreliable GPU; its value is {@code lost} or {@code degraded}. */
  static final String TAINT = Driver.NAME + "/health";

  /** The conditions of a device for which kube-scheduler waits before it binds a pod. */
  static final String CONDITIONS = "bindingConditions";

  private static final long MIB = 1L << 20;
  private static final int LONGEST_TEXT = 64;
  private static final Pattern VERSION = Pattern.compile("(\\d+)(?:\\.(\\d+))?(?:\\.(\\d+))?");

  private NodeDevices() {}

  /** {@return the GPUs that can be shared, by their devices' names} */
  static Map<String, GpuId> names(GpuPool pool) {
    Map<String, GpuId> names = new LinkedHashMap<>();
    for (PhysicalGpu gpu : pool.gpus()) {
      if (gpu.unusableAsWhole().isEmpty()) {
        names.put(name(gpu), gpu.id());
      }
    }
    return names;
  }

  /** A DNS label, which a device's name must be. */
  private static String name(PhysicalGpu gpu) {
    return gpu.id().value().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9-]", "-");
  }

  /**
   * {@return the spec of the node's slice, without the generation}
   *
   * @param pool the node's GPUs
   * @param node the node's name
   * @param isConditional whether pods are bound only when their gangs are complete
   */
  static ObjectNode spec(GpuPool pool, String node, boolean isConditional) {
    ObjectNode spec = JsonNodeFactory.instance.objectNode();
    spec.put("driver", Driver.NAME).put("nodeName", node);
    spec.putObject("pool").put("name", node).put("resourceSliceCount", 1);
    spec.putArray("devices");
    List<GpuReading> readings = pool.readings();
    Map<GpuId, Health> healths = healths(pool.states(), readings);
    for (PhysicalGpu gpu : pool.gpus()) {
      if (gpu.unusableAsWhole().isPresent()) {
        continue; // its MIG mode is on
      }
      ObjectNode device = spec.withArray("devices").addObject();
      device.put("name", name(gpu)).put("allowMultipleAllocations", true);
      ObjectNode attributes = device.putObject("attributes");
      text(attributes, "uuid", gpu.id().value());
      text(attributes, "model", gpu.model());
      text(attributes, "provider", gpu.provider());
      readings.stream()
          .filter(reading -> reading.gpu().equals(gpu.id()))
          .forEach(reading -> attributes(attributes, reading.properties()));
      capacity(device.putObject("capacity"), gpu);
      if (isConditional) {
        device.putArray(CONDITIONS).add(Driver.GANG_COMPLETE);
        device.putArray("bindingFailureConditions").add(Driver.GANG_FAILED);
      }
      Health health = healths.getOrDefault(gpu.id(), Health.GOOD);
      if (health.health() != GpuHealth.HEALTHY) {
        taint(device, health.health());
      }
    }
    return spec;
  }

  /**
   * Whether a GPU can be relied on.
   *
   * @param health the worst that is known
   * @param reason why, in words; empty if it is healthy
   */
  record Health(GpuHealth health, String reason) {
    static final Health GOOD = new Health(GpuHealth.HEALTHY, "");

    private Health or(Health other) {
      return health.compareTo(other.health) >= 0 ? this : other;
    }
  }

  /** {@return the health of GPUs, by what the seat has been told and by what can be read} */
  static Map<GpuId, Health> healths(List<GpuState> states, List<GpuReading> readings) {
    Map<GpuId, Health> healths = new HashMap<>();
    states.forEach(one -> healths.put(one.gpu(), new Health(one.health(), one.healthReason())));
    readings.forEach(
        one -> healths.merge(one.gpu(), new Health(one.health(), one.healthReason()), Health::or));
    return healths;
  }

  private static void capacity(ObjectNode capacity, PhysicalGpu gpu) {
    ObjectNode share = capacity.putObject(Driver.SHARE).put("value", "100");
    policy(share, "100", "1", "100", "1");
    String memory = gpu.usableMemory().bytes() / MIB + "Mi";
    policy(capacity.putObject(Driver.MEMORY).put("value", memory), memory, "1Mi", memory, "1Mi");
  }

  private static void policy(
      ObjectNode capacity, String otherwise, String min, String max, String step) {
    ObjectNode policy = capacity.putObject("requestPolicy").put("default", otherwise);
    policy.putObject("validRange").put("min", min).put("max", max).put("step", step);
  }

  private static void attributes(ObjectNode attributes, Map<String, String> properties) {
    text(attributes, "architecture", properties.getOrDefault("architecture", ""));
    version(attributes, "driverVersion", properties.getOrDefault("driver_version", ""));
    version(attributes, "cudaVersion", properties.getOrDefault("cuda_version", ""));
    version(attributes, "computeCapability", properties.getOrDefault("compute_capability", ""));
    String numa = properties.getOrDefault("numa_node", "");
    if (numa.matches("\\d{1,4}")) {
      attributes.putObject("numaNode").put("int", Integer.parseInt(numa));
    }
    text(attributes, "pciBusID", properties.getOrDefault("pci", ""));
  }

  private static void text(ObjectNode attributes, String name, String value) {
    if (!value.isBlank()) {
      String text = value.length() > LONGEST_TEXT ? value.substring(0, LONGEST_TEXT) : value;
      attributes.putObject(name).put("string", text);
    }
  }

  /** Adds a semantic version: three numbers without leading zeros. */
  private static void version(ObjectNode attributes, String name, String value) {
    Matcher matcher = VERSION.matcher(value.strip());
    if (matcher.lookingAt()) {
      StringBuilder version = new StringBuilder();
      for (int i = 1; i <= 3; i++) {
        String number = matcher.group(i);
        version.append(i == 1 ? "" : ".").append(number == null ? 0 : Long.parseLong(number));
      }
      attributes.putObject(name).put("version", version.toString());
    }
  }

  private static void taint(ObjectNode device, GpuHealth health) {
    device
        .withArray("taints")
        .addObject()
        .put("key", TAINT)
        .put("value", health.name().toLowerCase(Locale.ROOT))
        .put("effect", health == GpuHealth.LOST ? "NoExecute" : "NoSchedule");
  }
}
