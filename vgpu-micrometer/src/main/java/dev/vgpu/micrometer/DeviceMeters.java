package dev.vgpu.micrometer;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.Set;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The meters of one GPU: how the pool shares it, and the readings of its driver. A reading that the
 * driver does not provide has no meter; one that it no longer provides is NaN.
 */
final class DeviceMeters {
  /** The values that the meters read; replaced as a whole. */
  static final class Values {
    private volatile @Nullable GpuState state;
    private volatile @Nullable GpuReading reading;

    private double ofState(Function<GpuState, Double> value) {
      GpuState read = state;
      return read == null ? Double.NaN : value.apply(read);
    }

    private double ofReading(Told told) {
      GpuReading read = reading;
      return read == null ? Double.NaN : told.value.apply(read).orElse(Double.NaN);
    }

    private double isHealth(GpuHealth health) {
      return ofState(read -> read.health() == health ? 1.0 : 0.0);
    }
  }

  private enum Kind {
    GAUGE,
    COUNTER
  }

  /** A reading that a driver may provide; its name follows OpenTelemetry's hardware conventions. */
  private record Told(
      Kind kind,
      String name,
      String unit,
      String description,
      Tags tags,
      Function<GpuReading, OptionalDouble> value) {}

  private static final List<Told> TOLD =
      List.of(
          utilization("general", GpuReading::busyPercent),
          utilization("encoder", GpuReading::encoderPercent),
          utilization("decoder", GpuReading::decoderPercent),
          bytes("hw.gpu.memory.limit", "All its memory", GpuReading::memoryTotal),
          bytes("hw.gpu.memory.usage", "Memory that is taken", GpuReading::memoryUsed),
          new Told(
              Kind.GAUGE,
              "vgpu.pool.memory.shared",
              "",
              "1: it has no memory of its own, and its memory's figures are the host's",
              Tags.empty(),
              DeviceMeters::sharesHostMemory),
          new Told(
              Kind.GAUGE,
              "hw.temperature",
              "celsius",
              "How warm it is",
              type(),
              reading -> of(reading.temperatureCelsius())),
          new Told(
              Kind.GAUGE, "hw.power", "watts", "What it draws", type(), GpuReading::powerWatts),
          errors("corrected", GpuReading::eccCorrected),
          errors("uncorrected", GpuReading::eccUncorrected));

  private final MeterSet<Values> meters;
  private final Set<Told> registered = new HashSet<>();

  DeviceMeters(MeterRegistry registry, Runnable beforeRead, GpuId gpu) {
    meters = new MeterSet<>(registry, beforeRead, new Values(), Tags.of("hw.id", gpu.value()));
    status("ok", GpuHealth.HEALTHY);
    status("degraded", GpuHealth.DEGRADED);
    status("failed", GpuHealth.LOST);
    meters
        .gauge(
            "vgpu.pool.memory.free",
            "bytes",
            "Memory that quotas may take and nobody holds",
            values -> values.ofState(state -> (double) state.memoryFree().bytes()))
        .counter(
            "vgpu.pool.turns",
            "",
            "Turns begun since the seat was taken",
            values -> values.ofState(state -> (double) state.switches()));
  }

  private void status(String state, GpuHealth health) {
    meters.gauge(
        "hw.status",
        "",
        "1 for the state that it is in, 0 for the others",
        type().and("hw.state", state),
        values -> values.isHealth(health));
  }

  void update(GpuState state, @Nullable GpuReading reading) {
    meters.source().state = state;
    meters.source().reading = reading;
    if (reading == null) {
      return;
    }
    for (Told told : TOLD) {
      if (!registered.contains(told) && told.value.apply(reading).isPresent()) {
        registered.add(told);
        register(told);
      }
    }
  }

  private void register(Told told) {
    if (told.kind == Kind.GAUGE) {
      meters.gauge(told.name, told.unit, told.description, told.tags, v -> v.ofReading(told));
    } else {
      meters.counter(told.name, told.unit, told.description, told.tags, v -> v.ofReading(told));
    }
  }

  void remove() {
    meters.remove();
  }

  private static OptionalDouble sharesHostMemory(GpuReading reading) {
    return reading.properties().containsKey("memory")
        ? OptionalDouble.of(1)
        : OptionalDouble.empty();
  }

  private static Told utilization(String task, Function<GpuReading, OptionalInt> percent) {
    return new Told(
        Kind.GAUGE,
        "hw.gpu.utilization",
        "ratio",
        "Part of the time in which it worked",
        Tags.of("hw.gpu.task", task),
        reading -> {
          OptionalInt told = percent.apply(reading);
          return told.isPresent()
              ? OptionalDouble.of(told.getAsInt() / 100.0)
              : OptionalDouble.empty();
        });
  }

  private static Told bytes(
      String name, String description, Function<GpuReading, Optional<MemorySize>> size) {
    return new Told(
        Kind.GAUGE,
        name,
        "bytes",
        description,
        Tags.empty(),
        reading ->
            size.apply(reading)
                .map(told -> OptionalDouble.of((double) told.bytes()))
                .orElse(OptionalDouble.empty()));
  }

  private static Told errors(String kind, Function<GpuReading, OptionalLong> count) {
    return new Told(
        Kind.COUNTER,
        "hw.errors",
        "",
        "Errors of its memory since the driver was loaded",
        type().and("error.type", kind),
        reading -> {
          OptionalLong told = count.apply(reading);
          return told.isPresent()
              ? OptionalDouble.of((double) told.getAsLong())
              : OptionalDouble.empty();
        });
  }

  private static OptionalDouble of(OptionalInt value) {
    return value.isPresent() ? OptionalDouble.of(value.getAsInt()) : OptionalDouble.empty();
  }

  private static Tags type() {
    return Tags.of("hw.type", "gpu");
  }
}
