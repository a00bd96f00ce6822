package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.k8s.Driver;
import dev.vgpu.k8s.node.health.Condition;
import dev.vgpu.k8s.node.health.GpuConditions;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The GPUs of a node as DRA devices. */
final class NodeDevices {
  /** The taint of an unreliable GPU; its value is {@code lost}, {@code mig} or {@code degraded}. */
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
   * @param conditions their conditions
   * @param node the node's name
   * @param isConditional whether pods are bound only when their gangs are complete
   */
  static ObjectNode spec(
      GpuPool pool, GpuConditions conditions, String node, boolean isConditional) {
    return spec(pool, conditions, node, isConditional, PcieRoot.DEVICES);
  }

  static ObjectNode spec(
      GpuPool pool, GpuConditions conditions, String node, boolean isConditional, Path pciDevices) {
    ObjectNode spec = JsonNodeFactory.instance.objectNode();
    spec.put("driver", Driver.NAME).put("nodeName", node);
    spec.putObject("pool").put("name", node).put("resourceSliceCount", 1);
    spec.putArray("devices");
    Map<GpuId, Condition> now = conditions.now();
    for (PhysicalGpu gpu : pool.gpus()) {
      if (gpu.unusableAsWhole().isPresent()) {
        continue; // its MIG mode was on when it was found
      }
      ObjectNode device = spec.withArray("devices").addObject();
      device.put("name", name(gpu)).put("allowMultipleAllocations", true);
      ObjectNode attributes = device.putObject("attributes");
      text(attributes, "uuid", gpu.id().value());
      text(attributes, "model", gpu.model());
      text(attributes, "provider", gpu.provider());
      conditions
          .answer(gpu.id())
          .ifPresent(reading -> attributes(attributes, reading.properties(), pciDevices));
      capacity(device.putObject("capacity"), gpu);
      if (isConditional) {
        device.putArray(CONDITIONS).add(Driver.GANG_COMPLETE);
        device.putArray("bindingFailureConditions").add(Driver.GANG_FAILED);
      }
      Condition condition = now.getOrDefault(gpu.id(), Condition.GOOD);
      if (!condition.isGood()) {
        taint(device, condition);
      }
    }
    return spec;
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

  private static void attributes(
      ObjectNode attributes, Map<String, String> properties, Path pciDevices) {
    text(attributes, "architecture", properties.getOrDefault("architecture", ""));
    version(attributes, "driverVersion", properties.getOrDefault("driver_version", ""));
    version(attributes, "cudaVersion", properties.getOrDefault("cuda_version", ""));
    version(attributes, "computeCapability", properties.getOrDefault("compute_capability", ""));
    String numa = properties.getOrDefault("numa_node", "");
    if (numa.matches("\\d{1,4}")) {
      attributes.putObject("numaNode").put("int", Integer.parseInt(numa));
    }
    text(attributes, "clique", properties.getOrDefault("clique", ""));
    String bus = properties.getOrDefault("pci", "");
    text(attributes, "pciBusID", bus);
    PcieRoot.of(pciDevices, bus).ifPresent(root -> text(attributes, PcieRoot.ATTRIBUTE, root));
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

  private static void taint(ObjectNode device, Condition condition) {
    device
        .withArray("taints")
        .addObject()
        .put("key", TAINT)
        .put("value", condition.kind().name().toLowerCase(Locale.ROOT))
        .put("effect", condition.isUsable() ? "NoSchedule" : "NoExecute");
  }
}
