package dev.vgpu.cli.web;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuEvent;
import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuReading;
import dev.vgpu.GpuState;
import dev.vgpu.PhysicalGpu;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Turns the state of the pool into messages for viewers: a {@code hello} with the history, and a
 * {@code tick} for each look at the pool. Safe for use by several threads.
 */
final class Board implements AutoCloseable {
  private final GpuPool pool;
  private final LongSupplier nowNs;
  private final InstantSource wall;
  private final Supplier<JsonNode> mig;
  private final EventLog events = new EventLog();
  private final GpuPool.Listening listening;

  private final Map<String, TenantTrack> tracks = new LinkedHashMap<>();
  private final long[] times = new long[TenantTrack.LOOKS];
  private List<GpuReading> readings = List.of();
  private JsonNode migTree = JsonNodeFactory.instance.nullNode();
  private long looks;
  private byte[] tick = {};
  private byte @Nullable [] hello;

  Board(GpuPool pool, LongSupplier nowNs, InstantSource wall, Supplier<JsonNode> mig) {
    this.pool = pool;
    this.nowNs = nowNs;
    this.wall = wall;
    this.mig = mig;
    synchronized (events) { // New events follow those of the past.
      listening = pool.listen(this::onEvent);
      events.begin(pool.recentEvents());
    }
  }

  private void onEvent(GpuEvent event) {
    events.add(event);
  }

  /** Reads what is slow to read: the drivers' readings, and the MIG instances. */
  void readDevices() {
    List<GpuReading> read = pool.readings();
    JsonNode tree = mig.get();
    synchronized (this) {
      readings = read;
      migTree = tree;
    }
  }

  /** {@return the message for a new look at the pool} */
  synchronized byte[] look() {
    List<GpuLease> leases = pool.leases();
    Map<GpuId, GpuState> states =
        pool.states().stream().collect(Collectors.toMap(GpuState::gpu, Function.identity()));
    long atNs = nowNs.getAsLong();
    long wallMs = wall.millis();
    times[(int) (looks % TenantTrack.LOOKS)] = wallMs;
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("look", looks).put("at", wallMs);
    track(leases, states, atNs, wallMs);
    ArrayNode gpus = json.putArray("gpus");
    pool.gpus().forEach(gpu -> put(gpus.addObject(), gpu, leases, states));
    ArrayNode tenants = json.putArray("tenants");
    leases.forEach(lease -> put(tenants.addObject(), lease, leases, states, atNs, wallMs));
    json.set("events", events.takeNew());
    json.set("mig", migTree);
    looks++;
    hello = null;
    tick = message("tick", json);
    return tick;
  }

  private void track(List<GpuLease> leases, Map<GpuId, GpuState> states, long atNs, long wallMs) {
    Map<String, TenantTrack> before = new HashMap<>(tracks);
    tracks.clear();
    for (GpuLease lease : leases) {
      TenantTrack known = before.remove(lease.id());
      TenantTrack track = known == null ? new TenantTrack() : known;
      tracks.put(lease.id(), track);
      boolean isLost =
          Optional.ofNullable(states.get(lease.gpu()))
              .map(state -> state.health() == GpuHealth.LOST)
              .orElse(false);
      List<Long> gone = track.look(lease, looks, atNs, isLost);
      gone.forEach(pid -> tellGone(lease.id(), pid, wallMs));
    }
    before.forEach((id, track) -> track.processes().forEach(pid -> tellGone(id, pid, wallMs)));
  }

  /** Adds an event for the end of a process; the pool has none. */
  private void tellGone(String tenant, long pid, long wallMs) {
    String reason = "process " + pid + " is gone; its exit status is unknown";
    events.add(EventJson.seen("ProcessGone", wallMs, tenant, reason));
  }

  private void put(
      ObjectNode json, PhysicalGpu gpu, List<GpuLease> leases, Map<GpuId, GpuState> states) {
    Optional<GpuState> state = Optional.ofNullable(states.get(gpu.id()));
    Optional<GpuReading> reading =
        readings.stream().filter(each -> each.gpu().equals(gpu.id())).findFirst();
    GpuJson.put(json, gpu, state, reading);
    OptionalDouble held = OptionalDouble.of(0);
    for (GpuLease lease : leases) {
      if (lease.gpus().contains(gpu.id())) {
        OptionalDouble part = heldPercent(lease);
        held =
            held.isEmpty() || part.isEmpty()
                ? OptionalDouble.empty()
                : OptionalDouble.of(held.getAsDouble() + part.getAsDouble());
      }
    }
    TenantTrack.put(json, "held", held);
  }

  private void put(
      ObjectNode json,
      GpuLease lease,
      List<GpuLease> leases,
      Map<GpuId, GpuState> states,
      long atNs,
      long wallMs) {
    TenantJson.put(json, lease);
    TenantTrack track = tracks.get(lease.id());
    if (track == null) {
      return;
    }
    Optional<GpuState> state = Optional.ofNullable(states.get(lease.gpu()));
    boolean waits = WaitReason.waits(lease, state);
    track.waits(atNs, wallMs, waits);
    track.put(json);
    if (waits) {
      WaitReason reason = WaitReason.of(lease, state, seenOn(lease.gpu(), leases));
      ObjectNode wait = json.putObject("wait").put("why", EventJson.cut(reason.why()));
      reason.on().forEach(wait.putArray("on")::add);
    }
  }

  private List<WaitReason.Seen> seenOn(GpuId gpu, List<GpuLease> leases) {
    return leases.stream()
        .filter(lease -> lease.gpus().contains(gpu))
        .map(lease -> new WaitReason.Seen(lease, isBusy(lease)))
        .toList();
  }

  private boolean isBusy(GpuLease lease) {
    return lease.usage().running() > 0 || heldPercent(lease).orElse(0) > 0;
  }

  private OptionalDouble heldPercent(GpuLease lease) {
    TenantTrack track = tracks.get(lease.id());
    return track == null ? OptionalDouble.empty() : track.heldPercent();
  }

  /** {@return the message with the history until now, and the message of the last look} */
  synchronized byte[] hello() {
    if (hello == null) {
      long from = Math.max(0, looks - TenantTrack.LOOKS);
      ObjectNode json = JsonNodeFactory.instance.objectNode();
      json.put("kept", TenantTrack.LOOKS).put("look", looks - 1);
      ArrayNode at = json.putArray("at");
      for (long look = from; look < looks; look++) {
        at.add(times[(int) (look % TenantTrack.LOOKS)]);
      }
      ObjectNode history = json.putObject("history");
      tracks.forEach((id, track) -> track.putHistory(history.putObject(id), from, looks));
      json.set("events", events.told());
      byte[] before = message("hello", json);
      hello = Arrays.copyOf(before, before.length + tick.length);
      System.arraycopy(tick, 0, hello, before.length, tick.length);
    }
    return hello;
  }

  /**
   * Writes a server-sent event. The JSON is compact: line breaks occur only escaped, in strings.
   */
  private static byte[] message(String name, ObjectNode json) {
    return ("event: " + name + "\ndata: " + json + "\n\n").getBytes(UTF_8);
  }

  @Override
  public void close() {
    listening.close();
  }
}
