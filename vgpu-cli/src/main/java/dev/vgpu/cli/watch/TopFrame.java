package dev.vgpu.cli.watch;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.console.TextTable;
import dev.vgpu.cli.text.DeviceTexts;
import dev.vgpu.cli.text.EventTexts;
import dev.vgpu.cli.text.LeaseTexts;
import dev.vgpu.cli.text.Words;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** The contents of {@code top} for an interval between two looks at the pool. Immutable. */
final class TopFrame {
  private static final int WIDTH = Lines.WIDTH;
  private static final int SHORTEST_NAME = 8;
  private static final double PERCENT = 100;

  /**
   * One look at the pool.
   *
   * @param atNs when, on a monotonic clock
   * @param wallTime when, for people
   * @param gpus the GPUs
   * @param leases the leases
   * @param states how the GPUs are shared
   * @param readings the readings of their drivers
   * @param events the latest events
   */
  record Look(
      long atNs,
      Instant wallTime,
      List<PhysicalGpu> gpus,
      List<GpuLease> leases,
      List<GpuState> states,
      List<GpuReading> readings,
      List<GpuEvent> events) {
    static Look at(CliContext context, GpuPool pool) {
      List<PhysicalGpu> gpus = pool.gpus();
      List<GpuLease> leases = pool.leases();
      List<GpuState> states = pool.states();
      List<GpuReading> readings = pool.readings();
      List<GpuEvent> events = pool.recentEvents();
      return new Look(
          context.clock().nowNs(),
          context.clock().wallTime(),
          gpus,
          leases,
          states,
          readings,
          events);
    }
  }

  private final Look before;
  private final Look after;
  private final long lengthNs;
  private final Map<String, Long> heldNs = new HashMap<>();
  private final Map<String, Long> copiedNs = new HashMap<>();

  /**
   * Compares two looks.
   *
   * @param before the earlier one
   * @param after the later one, which may be the same
   */
  TopFrame(Look before, Look after) {
    this.before = before;
    this.after = after;
    this.lengthNs = after.atNs() - before.atNs();
    rise(GpuUsage::gpuTime, heldNs);
    rise(GpuUsage::copyTime, copiedNs);
  }

  /** Puts the increase of one time of each tenant between the two looks. */
  private void rise(Function<GpuUsage, Duration> time, Map<String, Long> into) {
    Map<String, Long> earlierNs = new HashMap<>();
    before
        .leases()
        .forEach(lease -> earlierNs.put(lease.id(), time.apply(lease.usage()).toNanos()));
    for (GpuLease lease : after.leases()) {
      long earlier = earlierNs.getOrDefault(lease.id(), 0L);
      into.put(lease.id(), Math.max(0, time.apply(lease.usage()).toNanos() - earlier));
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
      lines.addAll(device(gpu.id()));
      state(gpu.id()).ifPresent(state -> lines.addAll(lines(state)));
      if (leases.isEmpty()) {
        lines.add("  no virtual GPU");
      } else {
        lines.addAll(fitting(leases));
        leases.forEach(lease -> lines.addAll(notStopped(lease)));
      }
    }
    return lines;
  }

  /** Why an offline tenant's kernels are not stopped when more urgent work arrives. */
  private static List<String> notStopped(GpuLease lease) {
    if (lease.request().preemptionClass() != PreemptionClass.OFFLINE) {
      return List.of();
    }
    return lease
        .preemptionReason()
        .map(
            reason ->
                Lines.wrapped("  " + lease.id() + " is not stopped inside kernels: " + reason))
        .orElse(List.of());
  }

  /** The latest events, the newest first. */
  List<String> lastEvents(int most) {
    List<GpuEvent> events = after.events();
    List<String> lines = new ArrayList<>();
    for (int i = events.size() - 1; i >= Math.max(0, events.size() - most); i--) {
      lines.add(Lines.cut(EventTexts.line(events.get(i)), WIDTH));
    }
    return lines;
  }

  /** The events between the two looks. */
  List<GpuEvent> newEvents() {
    Set<String> known = new HashSet<>();
    before.events().forEach(event -> known.add(key(event)));
    return after.events().stream().filter(event -> !known.contains(key(event))).toList();
  }

  /** Identifies an event. Two copies of an event that came over a connection are not equal. */
  private static String key(GpuEvent event) {
    return event.at() + " " + EventTexts.kind(event) + " " + event.virtualGpu();
  }

  /** The device's readings, as its driver reports them. */
  private List<String> device(GpuId gpu) {
    GpuReading reading = reading(gpu);
    List<String> lines = new ArrayList<>();
    DeviceTexts.trouble(reading, state(gpu).orElse(null))
        .ifPresent(trouble -> lines.addAll(Lines.wrapped("  " + trouble)));
    if (reading != null && !DeviceTexts.load(reading).isEmpty()) {
      String memory = DeviceTexts.shortMemory(reading).map(used -> ", " + used).orElse("");
      lines.add(Lines.cut("  device " + DeviceTexts.load(reading) + memory, WIDTH));
    }
    return lines;
  }

  private @Nullable GpuReading reading(GpuId gpu) {
    return after.readings().stream()
        .filter(reading -> reading.gpu().equals(gpu))
        .findFirst()
        .orElse(null);
  }

  private Optional<GpuState> state(GpuId gpu) {
    return after.states().stream().filter(state -> state.gpu().equals(gpu)).findFirst();
  }

  /** How the GPU is shared, and why; then its free memory. */
  private List<String> lines(GpuState state) {
    StringBuilder sharing = new StringBuilder("  ").append(Words.of(state.mode()));
    state.holder().ifPresent(holder -> sharing.append(" ").append(holder));
    Double switches = switchesPerSecond(state);
    if (switches != null && switches > 0) {
      sharing.append(
          String.format(
              Locale.ROOT,
              ", turns of %.1f ms, %.0f a second",
              state.turnLength().toNanos() / 1e6,
              switches));
    }
    StringBuilder memory = new StringBuilder("  memory ");
    memory.append(Words.size(state.memoryFree())).append(" free");
    if (state.memoryLowWatermark().bytes() > 0) {
      memory
          .append(", reclaimed below ")
          .append(Words.size(state.memoryLowWatermark()))
          .append(" up to ")
          .append(Words.size(state.memoryHighWatermark()));
    }
    if (!state.suspended().isEmpty()) {
      memory.append("; suspended: ").append(String.join(" ", state.suspended()));
    }
    List<String> lines = new ArrayList<>();
    lines.add(Lines.cut(sharing.toString(), WIDTH));
    lines.addAll(Lines.wrapped("  because " + state.reason()));
    lines.add(Lines.cut(memory.toString(), WIDTH));
    return lines;
  }

  /** Null if no time has passed. */
  private @Nullable Double switchesPerSecond(GpuState state) {
    long earlier =
        before.states().stream()
            .filter(other -> other.gpu().equals(state.gpu()))
            .mapToLong(GpuState::switches)
            .findFirst()
            .orElse(state.switches());
    return lengthNs <= 0 ? null : Math.max(0, state.switches() - earlier) * 1e9 / lengthNs;
  }

  /** {@return the frame as JSON, for programs} */
  ObjectNode json() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("time", after.wallTime().toString()).put("interval_s", lengthNs / 1e9);
    json.putArray("gpus");
    json.putArray("leases");
    for (PhysicalGpu gpu : after.gpus()) {
      ObjectNode row = json.withArray("gpus").addObject();
      row.put("id", gpu.id().value()).put("model", gpu.model());
      put(row, "share_held_percent", heldPercent(leasesOf(gpu.id())));
      DeviceTexts.put(row, reading(gpu.id()), state(gpu.id()).orElse(null));
      state(gpu.id()).ifPresent(state -> put(row, state));
    }
    for (GpuLease lease : after.leases()) {
      ObjectNode row = LeaseTexts.json(lease);
      put(row, "share_held_percent", heldPercent(List.of(lease)));
      put(row, "copy_percent", percent(List.of(lease), copiedNs));
      row.put("held_back", isHeldBack(lease));
      json.withArray("leases").add(row);
    }
    json.putArray("events");
    newEvents().forEach(event -> json.withArray("events").add(EventTexts.json(event)));
    return json;
  }

  private void put(ObjectNode row, GpuState state) {
    row.put("sharing", Words.of(state.mode()))
        .put("sharing_reason", state.reason())
        .put("holder", state.holder().orElse(null))
        .put("turn_ms", state.turnLength().toNanos() / 1e6)
        .put("switches", state.switches());
    put(row, "switches_per_s", switchesPerSecond(state));
    row.put("memory_free_bytes", state.memoryFree().bytes())
        .put("memory_low_watermark_bytes", state.memoryLowWatermark().bytes())
        .put("memory_high_watermark_bytes", state.memoryHighWatermark().bytes())
        .putArray("suspended");
    state.suspended().forEach(row.withArray("suspended")::add);
    row.putArray("held_back");
    state.heldBack().forEach(row.withArray("held_back")::add);
  }

  private boolean isHeldBack(GpuLease lease) {
    return after.states().stream().anyMatch(state -> state.heldBack().contains(lease.id()));
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
            + DeviceTexts.gibibytes(MemorySize.ofBytes(quotas))
            + " of "
            + DeviceTexts.gibibytes(gpu.usableMemory())
            + " granted"
            + (held == null ? "" : String.format(Locale.ROOT, ", %.0f %% busy", held));
    return cutInside(gpu.id().value(), WIDTH - text.length() - 2) + "  " + text;
  }

  /** Shortens the tenants' names to the width that the other columns leave. */
  private List<String> fitting(List<GpuLease> leases) {
    List<String> whole = table(leases, WIDTH).lines();
    int widest = whole.stream().mapToInt(String::length).max().orElse(0);
    if (widest <= WIDTH) {
      return whole;
    }
    int name = leases.stream().mapToInt(lease -> lease.id().length()).max().orElse(0);
    int left = Math.max(SHORTEST_NAME, name - (widest - WIDTH));
    return table(leases, left).lines().stream().map(line -> Lines.cut(line, WIDTH)).toList();
  }

  private TextTable table(List<GpuLease> leases, int nameWidth) {
    boolean copies = leases.stream().anyMatch(lease -> copiedNs.getOrDefault(lease.id(), 0L) > 0);
    List<String> head = new ArrayList<>(List.of("tenant", "class", "share", "held"));
    head.addAll(copies ? List.of("copy") : List.of());
    head.addAll(List.of("memory", "wait", "lost", "procs", "slow"));
    TextTable table = new TextTable(head.toArray(String[]::new));
    for (GpuLease lease : leases) {
      List<String> row = new ArrayList<>();
      row.add(Lines.cut(lease.id(), nameWidth));
      row.add(Words.of(lease.request().preemptionClass()));
      row.add(LeaseTexts.share(lease));
      row.add(held(lease));
      row.addAll(copies ? List.of(percentText(percent(List.of(lease), copiedNs))) : List.of());
      row.add(LeaseTexts.memory(lease).replace(" ", ""));
      row.add(Integer.toString(lease.usage().waiting()));
      row.add(Long.toString(lease.usage().preemptions()));
      row.add(Integer.toString(lease.usage().processes()));
      row.add(slowdown(lease));
      table.row(row.toArray(String[]::new));
    }
    return table;
  }

  private static String percentText(@Nullable Double percent) {
    return percent == null ? "-" : String.format(Locale.ROOT, "%.1f%%", percent);
  }

  /** The GPU time that it had, with a mark if it must wait although it has work. */
  private String held(GpuLease lease) {
    return percentText(heldPercent(List.of(lease))) + (isHeldBack(lease) ? "*" : "");
  }

  private static String slowdown(GpuLease lease) {
    OptionalDouble slowdown = lease.usage().slowdown();
    return slowdown.isPresent() ? String.format(Locale.ROOT, "%.2f", slowdown.getAsDouble()) : "-";
  }

  /** Null if no time has passed. */
  private @Nullable Double heldPercent(List<GpuLease> leases) {
    return percent(leases, heldNs);
  }

  private @Nullable Double percent(List<GpuLease> leases, Map<String, Long> riseNs) {
    if (lengthNs <= 0) {
      return null;
    }
    long ns = leases.stream().mapToLong(lease -> riseNs.getOrDefault(lease.id(), 0L)).sum();
    return PERCENT * ns / lengthNs;
  }

  private static String cutInside(String text, int width) {
    return Lines.cutInside(text, Math.max(2 * SHORTEST_NAME, width));
  }
}
