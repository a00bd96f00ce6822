package dev.vgpu.core.flight;

import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuUsage;
import jdk.jfr.FlightRecorder;

/**
 * Writes events to active flight recordings. Thread-safe.
 *
 * <p>Each kind of event is a class of its own, loaded when the first event of that kind happens.
 * For that reason, this class calls only one static method of each.
 */
public final class FlightEvents {
  /** Set once, if this Java runtime has no flight recorder. */
  private static volatile boolean missing;

  private FlightEvents() {}

  /**
   * Records an event if a recording is active.
   *
   * @param event the event
   */
  public static void record(GpuEvent event) {
    if (isRecorder()) {
      put(event);
    }
  }

  /**
   * {@return whether there may be an active recording} If the flight recorder was never used, it is
   * not touched: loading the first event class initializes all of it, which takes tens of
   * milliseconds.
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
   * Records the usage of a virtual GPU if a recording is active.
   *
   * @param virtualGpu its name
   * @param usage its usage so far
   */
  public static void record(String virtualGpu, GpuUsage usage) {
    if (isRecorder()) {
      UsageFlight.put(virtualGpu, usage);
    }
  }
}
