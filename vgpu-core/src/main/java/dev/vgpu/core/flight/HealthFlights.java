package dev.vgpu.core.flight;

import dev.vgpu.watch.GpuEvent;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** Flight events about the health of GPUs. */
final class HealthFlights {
  private HealthFlights() {}

  @Name("dev.vgpu.HealthChanged")
  @Label("Health Changed")
  @Description("A GPU was lost, came back, or is faulty")
  @Category({"vgpu", "Health"})
  @StackTrace(false)
  static final class HealthChanged extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("GPU")
    @Nullable String gpu;

    @Label("Health")
    @Nullable String health;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.HealthChanged changed) {
      HealthChanged event = new HealthChanged();
      if (event.shouldCommit()) {
        event.virtualGpu = changed.virtualGpu();
        event.gpu = changed.gpu().value();
        event.health = changed.health().name();
        event.reason = changed.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.GpuFault")
  @Label("GPU Fault")
  @Description("A GPU's driver told of a fault")
  @Category({"vgpu", "Health"})
  @StackTrace(false)
  static final class GpuFault extends Event {
    @Label("GPU")
    @Nullable String gpu;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.GpuFault fault) {
      GpuFault event = new GpuFault();
      if (event.shouldCommit()) {
        event.gpu = fault.gpu().value();
        event.reason = fault.reason();
        event.commit();
      }
    }
  }
}
