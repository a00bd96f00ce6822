package dev.vgpu.k8s.node.dra;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.k8s.names.Driver;
import dev.vgpu.k8s.node.health.Condition;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Terms;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The GPUs of a node as DRA devices: those that can be shared, and the parts of those whose MIG
 * mode was on when they were found. Safe for use by several threads.
 */
final class NodeDevices {
  private static final Logger log = LoggerFactory.getLogger(NodeDevices.class);

  /** The taint of an unreliable GPU; its value is {@code lost}, {@code mig} or {@code degraded}. */
  static final String TAINT = Driver.NAME + "/health";

  /** The conditions of a device for which kube-scheduler waits before it binds a pod. */
  static final String CONDITIONS = "bindingConditions";

  private static final long MIB = 1L << 20;
  private static final List<Holding.Part> NONE = List.of();
  private static final int WHOLE = 100;
  private static final int LONGEST_TEXT = 64;
  private static final Pattern VERSION = Pattern.compile("(\\d+)(?:\\.(\\d+))?(?:\\.(\\d+))?");

  private final GpuPool pool;
  private final GpuConditions conditions;
  private final String node;
  private final Path pciDevices;
  private final Supplier<List<Holding>> held;

  /** What GPUs can be divided into. Read once: a lost GPU does not tell. */
  private final Map<GpuId, List<GpuPart>> parts = new ConcurrentHashMap<>();

  /**
   * Creates them.
   *
   * @param pool the node's GPUs
   * @param conditions their conditions
   * @param node the node's name
   */
  NodeDevices(GpuPool pool, GpuConditions conditions, String node) {
    this(pool, conditions, node, PcieRoot.DEVICES, List::of);
  }

  NodeDevices(
      GpuPool pool,
      GpuConditions conditions,
      String node,
      Path pciDevices,
      Supplier<List<Holding>> held) {
    this.pool = pool;
    this.conditions = conditions;
    this.node = node;
    this.pciDevices = pciDevices;
    this.held = held;
  }

  /**
   * What slots have of a GPU. Claims cannot have it.
   *
   * @param share percent
   * @param memory bytes
   */
  record Taken(long share, long memory) {
    static final Taken NOTHING = new Taken(0, 0);

    Taken plus(Taken other) {
      return new Taken(share + other.share, memory + other.memory);
    }
  }

  /** {@return what slots have, by GPU} */
  Map<GpuId, Taken> taken() {
    Map<GpuId, Taken> all = new LinkedHashMap<>();
    for (Holding holding : held.get()) {
      for (Holding.Part part : holding.owner().podUid().isPresent() ? holding.parts() : NONE) {
        Terms terms = part.terms();
        Taken one = new Taken(terms.sharePercent().orElse(0), terms.memory().bytes());
        terms.gpus().forEach(gpu -> all.merge(gpu, one, Taken::plus));
      }
    }
    return all;
  }

  /**
   * What a device is.
   *
   * @param gpu the GPU
   * @param part the part of it; empty if the GPU is shared
   */
  record Source(GpuId gpu, Optional<GpuPart> part) {}

  /** {@return all devices by their names} */
  Map<String, Source> all() {
    Map<String, Source> all = new LinkedHashMap<>();
    for (PhysicalGpu gpu : pool.gpus()) {
      if (gpu.unusableAsWhole().isEmpty()) {
        all.put(name(gpu), new Source(gpu.id(), Optional.empty()));
      }
      for (GpuPart part : parts(gpu)) {
        all.put(PartDevices.name(name(gpu), part), new Source(gpu.id(), Optional.of(part)));
      }
    }
    return all;
  }

  private List<GpuPart> parts(PhysicalGpu gpu) {
    if (gpu.unusableAsWhole().isEmpty()) {
      return List.of();
    }
    List<GpuPart> known = parts.get(gpu.id());
    if (known == null) {
      try {
        known = PartDevices.inOrder(pool.parts(gpu.id()));
        parts.put(gpu.id(), known);
      } catch (VgpuException e) {
        log.warn("the parts of a GPU in MIG mode cannot be read yet: gpu={}", gpu.id(), e);
        return List.of();
      }
    }
    return known;
  }

  private static String name(PhysicalGpu gpu) {
    return Driver.device(gpu.id().value());
  }

  /**
   * {@return the specs of the node's slices, without the generation} The first one has the GPUs
   * that are shared. The next ones have the counters of the others, and then their parts: a slice
   * has either counters or devices.
   *
   * @param isConditional whether pods are bound only when their gangs are complete
   * @param hasParts whether the parts of GPUs are devices
   * @param least how many slices there are at least; those that are not needed are empty
   */
  List<ObjectNode> slices(boolean isConditional, boolean hasParts, int least) {
    List<ObjectNode> shared = new ArrayList<>();
    List<ObjectNode> sets = new ArrayList<>();
    List<ObjectNode> divided = new ArrayList<>();
    Map<GpuId, Condition> now = conditions.now();
    Map<GpuId, Taken> taken = taken();
    for (PhysicalGpu gpu : pool.gpus()) {
      List<ObjectNode> its = new ArrayList<>();
      if (gpu.unusableAsWhole().isEmpty()) {
        shared(gpu, taken.getOrDefault(gpu.id(), Taken.NOTHING)).ifPresent(its::add);
        shared.addAll(its);
      } else if (hasParts && !parts(gpu).isEmpty()) {
        sets.add(PartDevices.counters(name(gpu), parts(gpu)));
        parts(gpu).forEach(part -> its.add(part(gpu, part)));
        divided.addAll(its);
      }
      Condition condition = now.getOrDefault(gpu.id(), Condition.GOOD);
      its.forEach(device -> complete(device, condition, isConditional));
    }
    List<ObjectNode> slices = new ArrayList<>();
    slices.add(slice("devices", shared));
    add(slices, PartDevices.SETS, sets, PartDevices.MOST_SETS);
    add(slices, "devices", divided, PartDevices.MOST_DEVICES);
    while (slices.size() < least) {
      slices.add(slice("devices", List.of()));
    }
    slices.forEach(one -> pool(one).put("resourceSliceCount", slices.size()));
    return slices;
  }

  private void add(List<ObjectNode> slices, String field, List<ObjectNode> entries, int most) {
    for (int from = 0; from < entries.size(); from += most) {
      slices.add(slice(field, entries.subList(from, Math.min(entries.size(), from + most))));
    }
  }

  private ObjectNode slice(String field, List<ObjectNode> entries) {
    ObjectNode spec = JsonNodeFactory.instance.objectNode();
    spec.put("driver", Driver.NAME).put("nodeName", node);
    spec.putObject("pool").put("name", node);
    spec.putArray(field).addAll(entries);
    return spec;
  }

  /** {@return what a slice says of its pool} */
  static ObjectNode pool(ObjectNode spec) {
    return (ObjectNode) spec.path("pool");
  }

  /** {@return a GPU with what slots leave of it; empty if that is nothing} */
  private Optional<ObjectNode> shared(PhysicalGpu gpu, Taken taken) {
    long share = WHOLE - taken.share();
    long mebibytes = (gpu.usableMemory().bytes() - taken.memory()) / MIB;
    if (share < 1 || mebibytes < 1) {
      return Optional.empty();
    }
    ObjectNode device = JsonNodeFactory.instance.objectNode();
    device.put("name", name(gpu)).put("allowMultipleAllocations", true);
    attributes(device, gpu, "gpu");
    ObjectNode capacity = device.putObject("capacity");
    capacity(capacity, Driver.SHARE, Long.toString(share), "1");
    capacity(capacity, Driver.MEMORY, mebibytes + "Mi", "1Mi");
    return Optional.of(device);
  }

  private ObjectNode part(PhysicalGpu gpu, GpuPart part) {
    ObjectNode device = JsonNodeFactory.instance.objectNode();
    device.put("name", PartDevices.name(name(gpu), part));
    ObjectNode attributes = attributes(device, gpu, PartDevices.TYPE);
    text(attributes, "profile", part.profile());
    text(attributes, "parentUUID", gpu.id().value());
    attributes.putObject("start").put("int", part.start());
    ObjectNode capacity = device.putObject("capacity");
    capacity.putObject(Driver.MEMORY).put("value", part.memory().bytes() / MIB + "Mi");
    capacity.putObject("multiprocessors").put("value", Integer.toString(part.multiprocessors()));
    PartDevices.consume(device, name(gpu), part);
    return device;
  }

  private static void complete(ObjectNode device, Condition condition, boolean isConditional) {
    if (isConditional) {
      device.putArray(CONDITIONS).add(Driver.GANG_COMPLETE);
      device.putArray("bindingFailureConditions").add(Driver.GANG_FAILED);
    }
    if (!condition.isGood()) {
      taint(device, condition);
    }
  }

  /**
   * A claim that does not say how much it takes, takes all that there is. The API server refuses a
   * step that leads from the least beyond that.
   */
  private static void capacity(ObjectNode capacity, String name, String all, String step) {
    ObjectNode policy =
        capacity.putObject(name).put("value", all).putObject("requestPolicy").put("default", all);
    ObjectNode range = policy.putObject("validRange").put("min", step).put("max", all);
    if (!all.equals(step)) {
      range.put("step", step);
    }
  }

  private ObjectNode attributes(ObjectNode device, PhysicalGpu gpu, String type) {
    ObjectNode attributes = device.putObject("attributes");
    text(attributes, "type", type);
    text(attributes, "uuid", gpu.id().value());
    text(attributes, "model", gpu.model());
    text(attributes, "provider", gpu.provider());
    conditions
        .answer(gpu.id())
        .ifPresent(reading -> attributes(attributes, reading.properties(), pciDevices));
    return attributes;
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
