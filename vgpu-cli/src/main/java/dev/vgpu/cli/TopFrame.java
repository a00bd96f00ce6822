package dev.vgpu.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.cli.console.TextTable;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** What {@code top} shows of an interval between two looks at the pool. Immutable. */
final class TopFrame {
  private static final int WIDTH = 80;
  private static final int SHORTEST_NAME = 8;
  private static final double PERCENT = 100;

  /**
   * One look at the pool.
   *
   * @param atNs when, on the clock that never goes back
   * @param wallTime when, for people
   * @param gpus the GPUs
   * @param leases who holds what
   */
  record Look(long atNs, Instant wallTime, List<PhysicalGpu> gpus, List<GpuLease> leases) {
    static Look at(CliContext context, GpuPool pool) {
      List<PhysicalGpu> gpus = pool.gpus();
      List<GpuLease> leases = pool.leases();
      return new Look(context.clock().nowNs(), context.clock().wallTime(), gpus, leases);
    }
  }

  private final Look after;
  private final long lengthNs;
  private final Map<String, Long> heldNs = new HashMap<>();

  /**
   * Compares two looks.
   *
   * @param before the earlier one
   * @param after the later one, which may be the same
   */
  TopFrame(Look before, Look after) {
    this.after = after;
    this.lengthNs = after.atNs() - before.atNs();
    Map<String, Long> gpuTimeNs = new HashMap<>();
    before.leases().forEach(lease -> gpuTimeNs.put(lease.id(), lease.usage().gpuTime().toNanos()));
    for (GpuLease lease : after.leases()) {
      long earlier = gpuTimeNs.getOrDefault(lease.id(), 0L);
      heldNs.put(lease.id(), Math.max(0, lease.usage().gpuTime().toNanos() - earlier));
    }
  }

  /** {@return the lines, none wider than 80 columns} */
  List<String> lines() {
    List<String> lines = new ArrayList<>();
    for (PhysicalGpu gpu : after.gpus()) {
      List<GpuLease> leases = leasesOf(gpu.id());
      if (!lines.isEmpty()) {
        lines.add("");
      }
      lines.add(title(gpu, leases));
      if (leases.isEmpty()) {
        lines.add("  no virtual GPU");
      } else {
        lines.addAll(fitting(leases));
      }
    }
    return lines;
  }

  /** {@return the same for programs} */
  ObjectNode json() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("time", after.wallTime().toString()).put("interval_s", lengthNs / 1e9);
    json.putArray("gpus");
    json.putArray("leases");
    for (PhysicalGpu gpu : after.gpus()) {
      ObjectNode row = json.withArray("gpus").addObject();
      row.put("id", gpu.id().value()).put("model", gpu.model());
      put(row, "share_held_percent", heldPercent(leasesOf(gpu.id())));
    }
    for (GpuLease lease : after.leases()) {
      ObjectNode row = LeaseTexts.json(lease);
      put(row, "share_held_percent", heldPercent(List.of(lease)));
      json.withArray("leases").add(row);
    }
    return json;
  }

  private static void put(ObjectNode row, String name, @Nullable Double percent) {
    if (percent == null) {
      row.putNull(name);
    } else {
      row.put(name, Math.round(percent * PERCENT) / PERCENT);
    }
  }

  private List<GpuLease> leasesOf(GpuId gpu) {
    return after.leases().stream().filter(lease -> lease.gpus().contains(gpu)).toList();
  }

  private String title(PhysicalGpu gpu, List<GpuLease> leases) {
    Double held = heldPercent(leases);
    long quotas = leases.stream().mapToLong(lease -> lease.request().memory().bytes()).sum();
    String text =
        gpu.model()
            + ", "
            + Devices.gibibytes(MemorySize.ofBytes(quotas))
            + " of "
            + Devices.gibibytes(gpu.usableMemory())
            + " granted"
            + (held == null ? "" : String.format(Locale.ROOT, ", %.0f %% busy", held));
    return cutInside(gpu.id().value(), WIDTH - text.length() - 2) + "  " + text;
  }

  /** The tenants' names are cut to what the other columns leave. */
  private List<String> fitting(List<GpuLease> leases) {
    List<String> whole = table(leases, WIDTH).lines();
    int widest = whole.stream().mapToInt(String::length).max().orElse(0);
    if (widest <= WIDTH) {
      return whole;
    }
    int name = leases.stream().mapToInt(lease -> lease.id().length()).max().orElse(0);
    int left = Math.max(SHORTEST_NAME, name - (widest - WIDTH));
    return table(leases, left).lines().stream().map(line -> cut(line, WIDTH)).toList();
  }

  private TextTable table(List<GpuLease> leases, int nameWidth) {
    TextTable table =
        new TextTable("tenant", "class", "share", "held", "memory", "wait", "preempt", "procs");
    for (GpuLease lease : leases) {
      Double held = heldPercent(List.of(lease));
      table.row(
          cut(lease.id(), nameWidth),
          Words.of(lease.request().preemptionClass()),
          LeaseTexts.share(lease),
          held == null ? "-" : String.format(Locale.ROOT, "%.1f%%", held),
          LeaseTexts.memory(lease).replace(" ", ""),
          Integer.toString(lease.usage().waiting()),
          Long.toString(lease.usage().preemptions()),
          Integer.toString(lease.usage().processes()));
    }
    return table;
  }

  /** Null where no time has passed. */
  private @Nullable Double heldPercent(List<GpuLease> leases) {
    if (lengthNs <= 0) {
      return null;
    }
    long ns = leases.stream().mapToLong(lease -> heldNs.getOrDefault(lease.id(), 0L)).sum();
    return PERCENT * ns / lengthNs;
  }

  /** Two GPUs of one machine differ in the last characters. */
  private static String cutInside(String text, int width) {
    int left = Math.max(2 * SHORTEST_NAME, width);
    int tail = left / 2;
    return text.length() <= left
        ? text
        : text.substring(0, left - tail - 1) + "…" + text.substring(text.length() - tail);
  }

  private static String cut(String text, int width) {
    return text.length() <= width ? text : text.substring(0, width - 1) + "…";
  }
}
