package dev.vgpu.micrometer;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.ArrayList;
import java.util.List;
import java.util.function.ToDoubleFunction;

/**
 * Meters with common tags that read one object and are removed together. Before each read, the
 * owner may refresh the object's values.
 *
 * @param <T> what is read
 */
final class MeterSet<T> {
  private final MeterRegistry registry;
  private final Runnable beforeRead;
  private final T source;
  private final Tags tags;
  private final List<Meter> meters = new ArrayList<>();

  MeterSet(MeterRegistry registry, Runnable beforeRead, T source, Tags tags) {
    this.registry = registry;
    this.beforeRead = beforeRead;
    this.source = source;
    this.tags = tags;
  }

  MeterSet<T> gauge(String name, String unit, String description, ToDoubleFunction<T> value) {
    return gauge(name, unit, description, Tags.empty(), value);
  }

  MeterSet<T> gauge(
      String name, String unit, String description, Tags more, ToDoubleFunction<T> value) {
    Gauge.Builder<T> builder =
        Gauge.builder(name, source, fresh(value)).tags(tags.and(more)).description(description);
    meters.add((unit.isEmpty() ? builder : builder.baseUnit(unit)).register(registry));
    return this;
  }

  MeterSet<T> counter(String name, String unit, String description, ToDoubleFunction<T> value) {
    return counter(name, unit, description, Tags.empty(), value);
  }

  MeterSet<T> counter(
      String name, String unit, String description, Tags more, ToDoubleFunction<T> value) {
    FunctionCounter.Builder<T> builder =
        FunctionCounter.builder(name, source, fresh(value))
            .tags(tags.and(more))
            .description(description);
    meters.add((unit.isEmpty() ? builder : builder.baseUnit(unit)).register(registry));
    return this;
  }

  private ToDoubleFunction<T> fresh(ToDoubleFunction<T> value) {
    return read -> {
      beforeRead.run();
      return value.applyAsDouble(read);
    };
  }

  void remove() {
    meters.forEach(registry::remove);
    meters.clear();
  }

  T source() {
    return source;
  }
}
