package dev.vgpu.dashboard;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.GpuPool;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
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
 * {@code tick} for each look at the pool, or {@code unknown} if it fails. Safe for use by several
 * threads.
 */
final class Board implements AutoCloseable {
  /** What one look at the pool has found. */
  private record Look(List<GpuLease> leases, Map<GpuId, GpuState> states, long atNs, long wallMs) {
    Optional<GpuState> state(GpuId gpu) {
      return Optional.ofNullable(states.get(gpu));
    }
  }

  private final GpuPool pool;
  private final LongSupplier nowNs;
  private final InstantSource wall;
  private final Supplier<String> mig;
  private final EventLog events = new EventLog();
  private final GpuPool.Listening listening;

  private final Map<String, TenantTrack> tracks = new LinkedHashMap<>();
  private final long[] times = new long[TenantTrack.LOOKS];
  private List<GpuReading> readings = List.of();
  private String migTree = "null";
  private long looks;
  private byte[] tick = {};
  private byte @Nullable [] hello;

  Board(GpuPool pool, LongSupplier nowNs, InstantSource wall, Supplier<String> mig) {
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
    // A line break would end the event's line. In JSON, outside strings, it is as good as a space.
    String tree = mig.get().replace('\n', ' ').replace('\r', ' ');
    synchronized (this) {
      readings = read;
      migTree = tree;
    }
  }

  /** {@return the message for a new look at the pool} */
  synchronized byte[] look() {
    Map<GpuId, GpuState> states =
        pool.states().stream().collect(Collectors.toMap(GpuState::gpu, Function.identity()));
    Look look = new Look(pool.leases(), states, nowNs.getAsLong(), wall.millis());
    times[(int) (looks % TenantTrack.LOOKS)] = look.wallMs();
    track(look);
    JsonText json = new JsonText();
    json.object().put("look", looks).put("at", look.wallMs()).array("gpus");
    pool.gpus().forEach(gpu -> put(json, gpu, look));
    json.endArray().array("tenants");
    look.leases().forEach(lease -> put(json, lease, look));
    json.endArray();
    events.putNew(json);
    json.putJson("mig", migTree);
    looks++;
    hello = null;
    tick = message("tick", json);
    return tick;
  }

  /** {@return the message that nothing is known now} */
  byte[] unknown(Throwable failure) {
    String why = failure.getMessage() == null ? failure.toString() : failure.getMessage();
    JsonText json = new JsonText();
    json.object().put("at", wall.millis()).put("why", EventJson.cut(why));
    return message("unknown", json);
  }

  private void track(Look look) {
    Map<String, TenantTrack> before = new HashMap<>(tracks);
    tracks.clear();
    for (GpuLease lease : look.leases()) {
      TenantTrack known = before.remove(lease.id());
      TenantTrack track = known == null ? new TenantTrack() : known;
      tracks.put(lease.id(), track);
      boolean isLost =
          look.state(lease.gpu()).map(state -> state.health() == GpuHealth.LOST).orElse(false);
      List<Long> gone = track.look(lease, looks, look.atNs(), isLost);
      gone.forEach(pid -> tellGone(lease.id(), pid, look.wallMs()));
    }
    before.forEach(
        (id, track) -> track.processes().forEach(pid -> tellGone(id, pid, look.wallMs())));
  }

  /** Adds an event for the end of a process; the pool has none. */
  private void tellGone(String tenant, long pid, long wallMs) {
    String reason = "process " + pid + " is gone; its exit status is unknown";
    events.add(EventJson.seen("ProcessGone", wallMs, tenant, reason));
  }

  private void put(JsonText json, PhysicalGpu gpu, Look look) {
    Optional<GpuReading> reading =
        readings.stream().filter(each -> each.gpu().equals(gpu.id())).findFirst();
    json.object();
    GpuJson.put(json, gpu, look.state(gpu.id()), reading);
    OptionalDouble held = OptionalDouble.of(0);
    for (GpuLease lease : look.leases()) {
      if (lease.gpus().contains(gpu.id())) {
        OptionalDouble part = heldPercent(lease);
        held =
            held.isEmpty() || part.isEmpty()
                ? OptionalDouble.empty()
                : OptionalDouble.of(held.getAsDouble() + part.getAsDouble());
      }
    }
    TenantTrack.put(json, "held", held);
    json.endObject();
  }

  private void put(JsonText json, GpuLease lease, Look look) {
    json.object();
    TenantJson.put(json, lease);
    TenantTrack track = tracks.get(lease.id());
    if (track != null) {
      Optional<GpuState> state = look.state(lease.gpu());
      boolean waits = WaitReason.waits(lease, state);
      track.waits(look.atNs(), look.wallMs(), waits);
      track.put(json, TenantJson.isCounted(lease));
      if (waits) {
        WaitReason reason = WaitReason.of(lease, state, seenOn(lease.gpu(), look.leases()));
        json.object("wait").put("why", EventJson.cut(reason.why()));
        GpuJson.put(json, "on", reason.on());
        json.endObject();
      }
    }
    json.endObject();
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
      JsonText json = new JsonText();
      json.object().put("kept", TenantTrack.LOOKS).put("look", looks - 1).array("at");
      for (long look = from; look < looks; look++) {
        json.add(times[(int) (look % TenantTrack.LOOKS)]);
      }
      json.endArray().object("history");
      for (Map.Entry<String, TenantTrack> each : tracks.entrySet()) {
        json.object(each.getKey());
        each.getValue().putHistory(json, from, looks);
        json.endObject();
      }
      json.endObject();
      events.putTold(json);
      byte[] before = message("hello", json);
      hello = Arrays.copyOf(before, before.length + tick.length);
      System.arraycopy(tick, 0, hello, before.length, tick.length);
    }
    return hello;
  }

  /** Writes a server-sent event. */
  private static byte[] message(String name, JsonText json) {
    return ("event: " + name + "\ndata: " + json.endObject() + "\n\n").getBytes(UTF_8);
  }

  @Override
  public void close() {
    listening.close();
  }
}
