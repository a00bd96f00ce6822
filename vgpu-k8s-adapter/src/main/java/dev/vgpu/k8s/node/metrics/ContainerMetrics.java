package dev.vgpu.k8s.node.metrics;

import dev.vgpu.GpuPool;
import dev.vgpu.k8s.node.health.GpuConditions;
import dev.vgpu.k8s.node.holding.Holding;
import dev.vgpu.k8s.node.holding.Holding.Part;
import dev.vgpu.k8s.node.holding.Holdings;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import dev.vgpu.watch.UsageRecord;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The usage of each container, in Prometheus' text format
 * (https://prometheus.io/docs/instrumenting/exposition_formats/). The labels are those of
 * dcgm-exporter. An unused virtual GPU has series too, with the value zero. Safe for use by several
 * threads.
 */
public final class ContainerMetrics {
  /** The end of the name of a MIG instance, such as NVIDIA A100-SXM4-40GB MIG 1g.5gb. */
  private static final Pattern PROFILE = Pattern.compile(" MIG (\\S+)$");

  private final GpuPool pool;
  private final GpuConditions conditions;
  private final Holdings holdings;
  private final Function<List<Holding>, Map<String, List<Target>>> targets;
  private final String node;

  /**
   * Creates the metrics of one node.
   *
   * @param pool its GPUs
   * @param conditions what was read of them; a scrape does not wait for their driver
   * @param holdings what is held for which owner
   * @param targets finds the containers of holdings, by their keys; asked once for each scrape
   * @param node the node's name
   */
  public ContainerMetrics(
      GpuPool pool,
      GpuConditions conditions,
      Holdings holdings,
      Function<List<Holding>, Map<String, List<Target>>> targets,
      String node) {
    this.pool = pool;
    this.conditions = conditions;
    this.holdings = holdings;
    this.targets = targets;
    this.node = node;
  }

  /**
   * A container that is under a virtual GPU.
   *
   * @param namespace its pod's namespace
   * @param pod its pod's name
   * @param container its name
   * @param podUid its pod's UID; empty if unknown
   */
  public record Target(String namespace, String pod, String container, String podUid) {}

  /** One metric of a virtual GPU, on each of its GPUs. */
  private record Metric(String name, String type, String help, ToDoubleFunction<GpuLease> value) {}

  /** Known for all GPUs of a virtual GPU together; counted in equal parts on each. */
  private static Metric divided(
      String name, String type, String help, ToDoubleFunction<GpuUsage> value) {
    return new Metric(
        name, type, help, lease -> value.applyAsDouble(lease.usage()) / lease.gpus().size());
  }

  private static final List<Metric> METRICS =
      List.of(
          new Metric(
              "vgpu_gpu_time_seconds_total",
              "counter",
              "Time during which the container's work ran on the GPU.",
              lease -> lease.usage().gpuTime().toNanos() / 1e9),
          new Metric(
              "vgpu_share_percent",
              "gauge",
              "Percent of the GPU's time that was granted; 0 for best effort.",
              lease -> lease.request().computePercent().orElse(0)),
          new Metric(
              "vgpu_entitled_percent",
              "gauge",
              "Percent of the GPU's time that it is entitled to while all of its class have work.",
              GpuLease::entitledPercent),
          new Metric(
              "vgpu_memory_quota_bytes",
              "gauge",
              "GPU memory that the container may hold.",
              lease -> lease.request().memory().bytes()),
          divided(
              "vgpu_memory_used_bytes",
              "gauge",
              "GPU memory that the container holds.",
              usage -> usage.memoryUsed().bytes()),
          divided(
              "vgpu_waiting",
              "gauge",
              "Pieces of work that wait for the GPU.",
              usage -> (double) usage.waiting()),
          divided(
              "vgpu_preemptions_total",
              "counter",
              "Pieces of work that were interrupted for a more urgent tenant.",
              usage -> (double) usage.preemptions()),
          divided(
              "vgpu_launches_total",
              "counter",
              "Kernels and graphs that were launched.",
              usage -> (double) usage.launches()),
          divided(
              "vgpu_allocations_denied_total",
              "counter",
              "Allocations that were refused for the quota.",
              usage -> (double) usage.deniedAllocations()));

  /** {@return all series with their current values} */
  public String text() {
    List<Row> rows = rows();
    StringBuilder text = new StringBuilder();
    for (Metric metric : METRICS) {
      head(text, metric.name(), metric.type(), metric.help());
      rows.forEach(
          row ->
              line(text, metric.name(), row.labels(), metric.value().applyAsDouble(row.lease())));
    }
    devices(text);
    return text.toString();
  }

  private record Row(GpuLease lease, String labels) {}

  private List<Row> rows() {
    Map<String, GpuLease> leases = new LinkedHashMap<>();
    pool.leases().forEach(lease -> leases.put(lease.id(), lease));
    List<Row> rows = new ArrayList<>();
    List<Holding> all = holdings.all();
    Map<String, List<Target>> of = targets.apply(all);
    for (Holding holding : all) {
      for (Part part : holding.parts()) {
        GpuLease lease = part.lease().map(leases::get).orElse(null);
        if (lease != null) {
          String whose = whose(of.getOrDefault(holding.key(), List.of()));
          lease.gpus().forEach(gpu -> rows.add(new Row(lease, gpuLabels(gpu) + "," + whose)));
        }
      }
    }
    return rows;
  }

  /** Containers that share one claim are one tenant: their parts cannot be told apart. */
  private static String whose(List<Target> targets) {
    return label("namespace", targets, Target::namespace)
        + ","
        + label("pod", targets, Target::pod)
        + ","
        + label("container", targets, Target::container)
        + ","
        + label("pod_uid", targets, Target::podUid);
  }

  private static String label(String name, List<Target> targets, Function<Target, String> value) {
    return label(name, String.join(",", targets.stream().map(value).distinct().toList()));
  }

  private static String label(String name, String value) {
    String escaped = value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
    return name + "=\"" + escaped + "\"";
  }

  /** DCGM's labels, as far as they are known. */
  private String gpuLabels(GpuId id) {
    List<PhysicalGpu> gpus = pool.gpus();
    List<String> labels = new ArrayList<>();
    int whole = 0;
    for (int i = 0; i < gpus.size(); i++) {
      Map<String, String> known =
          conditions.answer(gpus.get(i).id()).map(GpuReading::properties).orElse(Map.of());
      boolean isInstance = known.containsKey("parent");
      if (gpus.get(i).id().equals(id)) {
        labels.add(label("gpu", Integer.toString(i)));
        labels.add(label("UUID", id.value()));
        String bus = known.getOrDefault("pci", "");
        if (!bus.isEmpty()) {
          labels.add(label("pci_bus_id", bus.toUpperCase(Locale.ROOT)));
        }
        if (!bus.isEmpty() && !isInstance) {
          labels.add(label("device", "nvidia" + whole));
        }
        labels.add(label("modelName", gpus.get(i).model()));
        labels.add(label("Hostname", node));
        Matcher profile = PROFILE.matcher(gpus.get(i).model());
        if (isInstance && profile.find()) {
          labels.add(label("GPU_I_PROFILE", profile.group(1)));
        }
        return String.join(",", labels);
      }
      whole += isInstance ? 0 : 1;
    }
    return String.join(",", label("UUID", id.value()), label("Hostname", node));
  }

  private void devices(StringBuilder text) {
    Map<GpuId, Double> seconds = new HashMap<>();
    for (UsageRecord record : pool.usageSince(Instant.EPOCH)) {
      // A turn is on all its GPUs at once, and the record has their sum.
      double each = record.gpuTime().toNanos() / 1e9 / record.gpus().size();
      record.gpus().forEach(gpu -> seconds.merge(gpu, each, Double::sum));
    }
    String name = "vgpu_device_gpu_time_seconds_total";
    head(
        text,
        name,
        "counter",
        "Time during which work of all tenants ran, of those that ended too.");
    pool.gpus()
        .forEach(gpu -> line(text, name, gpuLabels(gpu.id()), seconds.getOrDefault(gpu.id(), 0.0)));
    memory(
        text,
        "vgpu_device_memory_used_bytes",
        "GPU memory in use, as the driver last reported it.",
        GpuReading::memoryUsed);
    memory(
        text,
        "vgpu_device_memory_total_bytes",
        "GPU memory, as the driver last reported it.",
        GpuReading::memoryTotal);
    String health = "vgpu_device_health";
    head(text, health, "gauge", "1 if the GPU can be relied on, else 0.");
    pool.states()
        .forEach(
            state ->
                line(
                    text,
                    health,
                    gpuLabels(state.gpu()),
                    state.health() == GpuHealth.HEALTHY ? 1 : 0));
  }

  private void memory(
      StringBuilder text,
      String name,
      String help,
      Function<GpuReading, Optional<MemorySize>> value) {
    head(text, name, "gauge", help);
    for (GpuReading reading : conditions.last()) {
      value
          .apply(reading)
          .ifPresent(size -> line(text, name, gpuLabels(reading.gpu()), (double) size.bytes()));
    }
  }

  private static void head(StringBuilder text, String name, String type, String help) {
    text.append("# HELP ").append(name).append(' ').append(help).append('\n');
    text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
  }

  private static void line(StringBuilder text, String name, String labels, double value) {
    text.append(name).append('{').append(labels).append("} ").append(value).append('\n');
  }
}
