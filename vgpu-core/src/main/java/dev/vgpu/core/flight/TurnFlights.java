package dev.vgpu.core.flight;

import dev.vgpu.watch.GpuEvent;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** Flight events about sharing a GPU. */
@SuppressWarnings("UnusedVariable") // the recorder reads the fields
final class TurnFlights {
  private TurnFlights() {}

  @Name("dev.vgpu.Preempted")
  @Label("Preempted")
  @Description("A virtual GPU lost its turn to a more urgent one")
  @Category({"vgpu", "Sharing"})
  @StackTrace(false)
  static final class Preempted extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("By")
    @Nullable String by;

    @Label("Times")
    long times;

    @Label("Cancelled Calls")
    int cancelledCalls;

    static void put(GpuEvent.Preempted preempted) {
      Preempted event = new Preempted();
      if (event.shouldCommit()) {
        event.virtualGpu = preempted.virtualGpu();
        event.by = preempted.by();
        event.times = preempted.times();
        event.cancelledCalls = preempted.cancelledCalls();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.CancelFailed")
  @Label("Cancel Failed")
  @Description("A running call could not be cancelled for a more urgent tenant")
  @Category({"vgpu", "Sharing"})
  @StackTrace(false)
  static final class CancelFailed extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.CancelFailed failed) {
      CancelFailed event = new CancelFailed();
      if (event.shouldCommit()) {
        event.virtualGpu = failed.virtualGpu();
        event.reason = failed.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.SharingChanged")
  @Label("Sharing Changed")
  @Description("The sharing mode of a GPU changed")
  @Category({"vgpu", "Sharing"})
  @StackTrace(false)
  static final class SharingChanged extends Event {
    @Label("GPU")
    @Nullable String gpu;

    @Label("Mode")
    @Nullable String mode;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.SharingChanged changed) {
      SharingChanged event = new SharingChanged();
      if (event.shouldCommit()) {
        event.gpu = changed.gpu().value();
        event.mode = changed.mode().name();
        event.reason = changed.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.SuspectReport")
  @Label("Suspect Report")
  @Description("A process reported impossible usage")
  @Category({"vgpu", "Sharing"})
  @StackTrace(false)
  static final class SuspectReport extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.SuspectReport suspect) {
      SuspectReport event = new SuspectReport();
      if (event.shouldCommit()) {
        event.virtualGpu = suspect.virtualGpu();
        event.reason = suspect.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Disturbed")
  @Label("Disturbed")
  @Description("What processes stand on failed and was begun anew")
  @Category({"vgpu", "Sharing"})
  @StackTrace(false)
  static final class Disturbed extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.Disturbed disturbed) {
      Disturbed event = new Disturbed();
      if (event.shouldCommit()) {
        event.virtualGpu = disturbed.virtualGpu();
        event.reason = disturbed.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.MeteringFailed")
  @Label("Metering Failed")
  @Description("Usage records cannot be written")
  @Category({"vgpu", "Sharing"})
  @StackTrace(false)
  static final class MeteringFailed extends Event {
    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.MeteringFailed failed) {
      MeteringFailed event = new MeteringFailed();
      if (event.shouldCommit()) {
        event.reason = failed.reason();
        event.commit();
      }
    }
  }
}
