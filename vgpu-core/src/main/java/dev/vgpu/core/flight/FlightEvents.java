package dev.vgpu.core.flight;

import dev.vgpu.GpuEvent;
import dev.vgpu.GpuUsage;
import jdk.jfr.FlightRecorder;

/**
 * Puts what happens into the recordings that are on. Safe for use by several threads.
 *
 * <p>Each kind of event is a class that is loaded when the first of its kind happens, and not
 * before: so that the parts here call no more than one static method each.
 */
public final class FlightEvents {
  /** Set once, where this Java has no recorder. */
  private static volatile boolean missing;

  private FlightEvents() {}

  /**
   * Records an event, if somebody records.
   *
   * @param event what happened
   */
  public static void record(GpuEvent event) {
    if (isRecorder()) {
      put(event);
    }
  }

  /**
   * {@return whether there may be a recording} As long as this Java's recorder was never used, it
   * is not touched: to load the first class of an event sets up all of it, which takes some
   * hundredths of a second.
   */
  private static boolean isRecorder() {
    try {
      return !missing && FlightRecorder.isInitialized();
    } catch (LinkageError e) { // a run-time image without the module jdk.jfr
      missing = true;
      return false;
    }
  }

  private static void put(GpuEvent event) {
    if (event instanceof GpuEvent.Acquired acquired) {
      LeaseFlights.Acquired.put(acquired);
    } else if (event instanceof GpuEvent.Refused refused) {
      LeaseFlights.Refused.put(refused);
    } else if (event instanceof GpuEvent.Resized resized) {
      LeaseFlights.Resized.put(resized);
    } else if (event instanceof GpuEvent.Closed closed) {
      LeaseFlights.Closed.put(closed);
    } else if (event instanceof GpuEvent.Leaked leaked) {
      LeaseFlights.Leaked.put(leaked);
    } else if (event instanceof GpuEvent.Preempted preempted) {
      TurnFlights.Preempted.put(preempted);
    } else if (event instanceof GpuEvent.CancelFailed failed) {
      TurnFlights.CancelFailed.put(failed);
    } else if (event instanceof GpuEvent.SharingChanged changed) {
      TurnFlights.SharingChanged.put(changed);
    } else if (event instanceof GpuEvent.SuspectReport suspect) {
      TurnFlights.SuspectReport.put(suspect);
    } else if (event instanceof GpuEvent.Disturbed disturbed) {
      TurnFlights.Disturbed.put(disturbed);
    } else if (event instanceof GpuEvent.MeteringFailed failed) {
      TurnFlights.MeteringFailed.put(failed);
    } else {
      putMemory(event);
    }
  }

  private static void putMemory(GpuEvent event) {
    if (event instanceof GpuEvent.AllocationDenied denied) {
      MemoryFlights.AllocationDenied.put(denied);
    } else if (event instanceof GpuEvent.ReclaimAsked asked) {
      MemoryFlights.ReclaimAsked.put(asked);
    } else if (event instanceof GpuEvent.Suspended suspended) {
      MemoryFlights.Suspended.put(suspended);
    } else if (event instanceof GpuEvent.Resumed resumed) {
      MemoryFlights.Resumed.put(resumed);
    } else if (event instanceof GpuEvent.EndedByReclaim ended) {
      MemoryFlights.EndedByReclaim.put(ended);
    } else if (event instanceof GpuEvent.HeldBack held) {
      MemoryFlights.HeldBack.put(held);
    } else if (event instanceof GpuEvent.HealthChanged changed) {
      HealthFlights.HealthChanged.put(changed);
    } else if (event instanceof GpuEvent.GpuFault fault) {
      HealthFlights.GpuFault.put(fault);
    }
  }

  /**
   * Records what a virtual GPU has used so far, if somebody records.
   *
   * @param virtualGpu its name
   * @param usage the reading
   */
  public static void record(String virtualGpu, GpuUsage usage) {
    if (isRecorder()) {
      UsageFlight.put(virtualGpu, usage);
    }
  }
}
