package dev.vgpu.core.wire;

import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.stream.Collectors;

/** Encodes and decodes usage, leases, GPUs and the status of backends. */
public final class LeaseValues {
  private static final int MOST_ITEMS = 10_000;
  private static final int MOST_NOTES = 100;

  private LeaseValues() {}

  private record Gpu(
      GpuId id,
      String model,
      MemorySize memory,
      MemorySize usableMemory,
      String provider,
      Optional<String> unusableAsWhole)
      implements PhysicalGpu {}

  /**
   * Adds usage to a message.
   *
   * @param message the message
   * @param prefix a prefix for each name
   * @param usage the usage
   */
  public static void put(Message message, String prefix, GpuUsage usage) {
    message
        .with(prefix + "gpuNs", usage.gpuTime().toNanos())
        .with(prefix + "calls", usage.calls())
        .with(prefix + "preemptions", usage.preemptions())
        .with(prefix + "running", usage.running())
        .with(prefix + "waiting", usage.waiting())
        .with(prefix + "reserved", usage.memoryReserved().bytes())
        .with(prefix + "used", usage.memoryUsed().bytes())
        .with(prefix + "processes", usage.processes())
        .with(prefix + "launches", usage.launches())
        .with(prefix + "denied", usage.deniedAllocations())
        .with(prefix + "copyNs", usage.copyTime().toNanos());
    usage.slowdown().ifPresent(estimate -> message.with(prefix + "slowdown", estimate));
  }

  /**
   * {@return the usage in a message}
   *
   * @param message a message filled by {@link #put(Message, String, GpuUsage)}
   * @param prefix the prefix of each name
   */
  public static UsageReading usage(Message message, String prefix) {
    return new UsageReading(
        count(message, prefix + "gpuNs"),
        count(message, prefix + "calls"),
        count(message, prefix + "preemptions"),
        (int) Math.min(Integer.MAX_VALUE, count(message, prefix + "running")),
        (int) Math.min(Integer.MAX_VALUE, count(message, prefix + "waiting")),
        count(message, prefix + "reserved"),
        count(message, prefix + "used"),
        (int) Math.min(Integer.MAX_VALUE, count(message, prefix + "processes")),
        count(message, prefix + "launches"),
        count(message, prefix + "denied"),
        message.find(prefix + "copyNs").isPresent() ? count(message, prefix + "copyNs") : 0,
        slowdown(message, prefix + "slowdown"));
  }

  private static OptionalDouble slowdown(Message message, String name) {
    try {
      double estimate = Double.parseDouble(message.find(name).orElse("NaN"));
      return estimate >= 0 ? OptionalDouble.of(estimate) : OptionalDouble.empty();
    } catch (NumberFormatException e) {
      throw new MalformedMessageException("not a number: " + name, e);
    }
  }

  private static long count(Message message, String name) {
    long count = message.number(name);
    if (count < 0) {
      throw new MalformedMessageException("a count is negative: " + name + "=" + count);
    }
    return count;
  }

  private static <T> void putAll(
      Message message, String name, List<? extends T> items, BiConsumer<String, T> put) {
    message.with(name + ".count", items.size());
    for (int i = 0; i < items.size(); i++) {
      put.accept(name + "." + i + ".", items.get(i));
    }
  }

  private static <T> List<T> getAll(Message message, String name, Function<String, T> get) {
    long count = count(message, name + ".count");
    if (count > MOST_ITEMS) {
      throw new MalformedMessageException("too many: " + name + "=" + count);
    }
    List<T> items = new ArrayList<>();
    try {
      for (int i = 0; i < count; i++) {
        items.add(get.apply(name + "." + i + "."));
      }
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not in a list of " + name + ": " + e.getMessage(), e);
    }
    return List.copyOf(items);
  }

  /**
   * Adds leases to a message.
   *
   * @param message the message
   * @param leases the leases
   */
  public static void putLeases(Message message, List<? extends GpuLease> leases) {
    putAll(
        message,
        "lease",
        leases,
        (String at, GpuLease lease) -> {
          message
              .with(at + "id", lease.id())
              .with(at + "pid", lease.pid())
              .with(at + "suspended", lease.isSuspended())
              .with(at + "away", lease.memorySuspended().bytes())
              .with(at + "entitled", lease.entitledPercent())
              .with(
                  at + "processes",
                  lease.processes().stream().map(String::valueOf).collect(Collectors.joining(" ")))
              .with(at + "impaired", lease.impaired().orElse(""))
              .with(at + "request.", RequestValues.of(lease.request()));
          message.with(at, RequestValues.of(lease.gpus()));
          lease.backend().ifPresent(name -> message.with(at + "backend", name));
          lease.preemption().ifPresent(level -> message.with(at + "preemption", level));
          lease.preemptionReason().ifPresent(why -> message.with(at + "preemptionReason", why));
          if (lease.passedThrough() > 0) {
            message.with(at + "unhandled", lease.passedThrough());
          }
          put(message, at + "usage.", lease.usage());
        });
  }

  /**
   * {@return the leases in a message}
   *
   * @param message a message filled by {@link #putLeases}
   */
  public static List<GpuLease> leases(Message message) {
    Map<String, Map<String, String>> requests = new LinkedHashMap<>();
    message
        .under("lease.")
        .forEach(
            (name, value) -> {
              int dot = name.indexOf(".request.");
              if (dot >= 0) {
                requests
                    .computeIfAbsent(
                        "lease." + name.substring(0, dot + 1), key -> new LinkedHashMap<>())
                    .put(name.substring(dot + ".request.".length()), value);
              }
            });
    return getAll(
        message,
        "lease",
        at ->
            new LeaseSnapshot(
                message.text(at + "id"),
                RequestValues.gpus(name -> message.find(at + name)),
                RequestValues.request(requests.getOrDefault(at, Map.of())),
                message.number(at + "pid"),
                Double.parseDouble(message.text(at + "entitled")),
                pids(message.text(at + "processes")),
                usage(message, at + "usage."),
                message.flag(at + "suspended"),
                MemorySize.ofBytes(message.number(at + "away")),
                message.find(at + "backend"),
                message.find(at + "impaired").filter(reason -> !reason.isEmpty()),
                message.find(at + "unhandled").isPresent() ? count(message, at + "unhandled") : 0,
                message.find(at + "preemption").map(Capabilities.Preemption::valueOf),
                message.find(at + "preemptionReason")));
  }

  static List<Long> pids(String text) {
    List<Long> pids = new ArrayList<>();
    for (String pid : text.split(" ", MOST_ITEMS)) {
      if (!pid.isEmpty()) {
        pids.add(Long.parseLong(pid));
      }
    }
    return List.copyOf(pids);
  }

  /**
   * Adds GPUs to a message.
   *
   * @param message the message
   * @param gpus the GPUs of the node
   */
  public static void putGpus(Message message, List<? extends PhysicalGpu> gpus) {
    putAll(
        message,
        "gpu",
        gpus,
        (String at, PhysicalGpu gpu) -> {
          message
              .with(at + "id", gpu.id())
              .with(at + "model", gpu.model())
              .with(at + "memory", gpu.memory().bytes())
              .with(at + "usable", gpu.usableMemory().bytes())
              .with(at + "provider", gpu.provider());
          gpu.unusableAsWhole().ifPresent(why -> message.with(at + "unusable", why));
        });
  }

  /**
   * {@return the GPUs in a message}
   *
   * @param message a message filled by {@link #putGpus}
   */
  public static List<PhysicalGpu> gpus(Message message) {
    return getAll(
        message,
        "gpu",
        at ->
            new Gpu(
                new GpuId(message.text(at + "id")),
                message.text(at + "model"),
                MemorySize.ofBytes(message.number(at + "memory")),
                MemorySize.ofBytes(message.number(at + "usable")),
                message.text(at + "provider"),
                message.find(at + "unusable")));
  }

  /**
   * Adds statuses to a message.
   *
   * @param message the message
   * @param statuses the statuses of providers and backends
   */
  public static void putBackends(Message message, List<BackendStatus> statuses) {
    putAll(
        message,
        "backend",
        statuses,
        (String at, BackendStatus status) -> {
          message.with(at + "name", status.name());
          status.unavailableBecause().ifPresent(why -> message.with(at + "unavailable", why));
          for (int i = 0; i < Math.min(MOST_NOTES, status.notes().size()); i++) {
            message.with(at + "note." + i, status.notes().get(i));
          }
          status.capabilities().ifPresent(can -> message.with(at + "can.", RequestValues.of(can)));
        });
  }

  /**
   * {@return the statuses in a message}
   *
   * @param message a message filled by {@link #putBackends}
   */
  public static List<BackendStatus> backends(Message message) {
    return getAll(
        message,
        "backend",
        at -> {
          String name = message.text(at + "name");
          List<String> notes = List.copyOf(message.under(at + "note.").values());
          if (message.find(at + "unavailable").isPresent()) {
            return BackendStatus.ofUnavailable(name, message.text(at + "unavailable"))
                .withNotes(notes);
          }
          Map<String, String> can = message.under(at + "can.");
          if (can.isEmpty()) {
            return BackendStatus.ofAvailable(name).withNotes(notes);
          }
          Capabilities capabilities = RequestValues.capabilities("", can);
          return BackendStatus.ofAvailable(name, capabilities).withNotes(notes);
        });
  }
}
