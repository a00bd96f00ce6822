package dev.vgpu.cli.watch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * A line of {@code vgpu usage}: the usage of one tenant, of all tenants of one name, or of all
 * tenants of one GPU. Immutable.
 *
 * @param key the tenant, name or GPU that the line is about
 * @param names the names that were requested
 * @param gpus the GPUs
 * @param from the start of the period
 * @param to when usage was last metered
 * @param isClosed whether usage can no longer grow
 * @param gpuTime GPU time
 * @param byteSeconds bytes of memory times seconds
 * @param launches launches of kernels and graphs
 * @param calls calls that began
 * @param preemptions turns lost
 * @param denied refused allocations
 * @param copyTime time of copies on the copy engines
 */
record UsageLine(
    String key,
    Set<String> names,
    Set<String> gpus,
    Instant from,
    Instant to,
    boolean isClosed,
    Duration gpuTime,
    double byteSeconds,
    long launches,
    long calls,
    long preemptions,
    long denied,
    Duration copyTime) {
  /** The subject of a line. */
  enum By {
    TENANT,
    GPU,
    NAME
  }

  private static final DateTimeFormatter TIME =
      DateTimeFormatter.ofPattern("HH:mm:ss", Locale.ROOT);
  private static final DateTimeFormatter DATE =
      DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm", Locale.ROOT);
  private static final double THOUSANDTHS = 1_000;

  static List<UsageLine> of(List<UsageRecord> records, By by) {
    Map<String, UsageLine> lines = new LinkedHashMap<>();
    for (UsageRecord record : records) {
      switch (by) {
        case TENANT -> add(lines, record.virtualGpu(), record, record.gpus(), 1);
        case NAME -> add(lines, record.name(), record, record.gpus(), 1);
        case GPU -> {
          for (GpuId gpu : record.gpus()) {
            add(lines, gpu.value(), record, List.of(gpu), record.gpus().size());
          }
        }
      }
    }
    return new ArrayList<>(lines.values());
  }

  /** Divides the usage of a tenant evenly among its GPUs. */
  private static void add(
      Map<String, UsageLine> lines, String key, UsageRecord record, List<GpuId> gpus, int parts) {
    UsageLine line =
        new UsageLine(
            key,
            Set.of(record.name()),
            new LinkedHashSet<>(gpus.stream().map(GpuId::value).toList()),
            record.from(),
            record.to(),
            record.isClosed(),
            record.gpuTime().dividedBy(parts),
            record.byteSeconds() / parts,
            record.launches(),
            record.calls(),
            record.preemptions(),
            record.deniedAllocations(),
            record.copyTime().dividedBy(parts));
    lines.merge(key, line, UsageLine::plus);
  }

  private UsageLine plus(UsageLine more) {
    return new UsageLine(
        key,
        both(names, more.names),
        both(gpus, more.gpus),
        from.isBefore(more.from) ? from : more.from,
        to.isAfter(more.to) ? to : more.to,
        isClosed && more.isClosed,
        gpuTime.plus(more.gpuTime),
        byteSeconds + more.byteSeconds,
        launches + more.launches,
        calls + more.calls,
        preemptions + more.preemptions,
        denied + more.denied,
        copyTime.plus(more.copyTime));
  }

  private static Set<String> both(Set<String> one, Set<String> other) {
    Set<String> both = new LinkedHashSet<>(one);
    both.addAll(other);
    return both;
  }

  /** The memory for people: GiB-hours, or GiB-seconds for small values. */
  String memoryText() {
    double gibSeconds = byteSeconds / (1L << 30);
    double gibHours = gibSeconds / 3600;
    return gibHours >= 1
        ? String.format(Locale.ROOT, "%.2f GiB·h", gibHours)
        : String.format(Locale.ROOT, "%.1f GiB·s", gibSeconds);
  }

  /** A moment for people: only the time of day if it is less than 20 hours ago. */
  static String text(Instant at, Instant now) {
    boolean isRecent = Duration.between(at, now).compareTo(Duration.ofHours(20)) < 0;
    return (isRecent ? TIME : DATE).withZone(ZoneId.systemDefault()).format(at);
  }

  ObjectNode json() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("key", key).putArray("names");
    names.forEach(json.withArray("names")::add);
    json.putArray("gpus");
    gpus.forEach(json.withArray("gpus")::add);
    return json.put("from", from.toString())
        .put("to", to.toString())
        .put("closed", isClosed)
        .put("gpu_seconds", gpuTime.toNanos() / 1e9)
        .put("copy_seconds", copyTime.toNanos() / 1e9)
        .put("byte_seconds", Math.round(byteSeconds * THOUSANDTHS) / THOUSANDTHS)
        .put("launches", launches)
        .put("calls", calls)
        .put("preemptions", preemptions)
        .put("denied_allocations", denied);
  }
}
