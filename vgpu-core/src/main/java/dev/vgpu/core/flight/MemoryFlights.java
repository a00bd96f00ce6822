package dev.vgpu.core.flight;

import dev.vgpu.watch.GpuEvent;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import org.jspecify.annotations.Nullable;

/** Flight events about memory. */
@SuppressWarnings("UnusedVariable") // the recorder reads the fields
final class MemoryFlights {
  private MemoryFlights() {}

  @Name("dev.vgpu.AllocationDenied")
  @Label("Allocation Denied")
  @Description("Allocations were refused for the quota")
  @Category({"vgpu", "Memory"})
  @StackTrace(false)
  static final class AllocationDenied extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Count")
    long count;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.AllocationDenied denied) {
      AllocationDenied event = new AllocationDenied();
      if (event.shouldCommit()) {
        event.virtualGpu = denied.virtualGpu();
        event.count = denied.count();
        event.reason = denied.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.ReclaimAsked")
  @Label("Reclaim Asked")
  @Description("The owner of a virtual GPU was asked to give memory back")
  @Category({"vgpu", "Memory"})
  @StackTrace(false)
  static final class ReclaimAsked extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Wanted")
    @DataAmount
    long wanted;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.ReclaimAsked asked) {
      ReclaimAsked event = new ReclaimAsked();
      if (event.shouldCommit()) {
        event.virtualGpu = asked.virtualGpu();
        event.wanted = asked.wanted().bytes();
        event.reason = asked.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Suspended")
  @Label("Suspended")
  @Description("The memory of a virtual GPU's processes was moved off the GPU")
  @Category({"vgpu", "Memory"})
  @StackTrace(false)
  static final class Suspended extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Freed")
    @DataAmount
    long freed;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.Suspended suspended) {
      Suspended event = new Suspended();
      if (event.shouldCommit()) {
        event.virtualGpu = suspended.virtualGpu();
        event.freed = suspended.freed().bytes();
        event.reason = suspended.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Resumed")
  @Label("Resumed")
  @Description("The processes of a virtual GPU have their memory on the GPU again")
  @Category({"vgpu", "Memory"})
  @StackTrace(false)
  static final class Resumed extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.Resumed resumed) {
      Resumed event = new Resumed();
      if (event.shouldCommit()) {
        event.virtualGpu = resumed.virtualGpu();
        event.reason = resumed.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.EndedByReclaim")
  @Label("Ended By Reclaim")
  @Description("The processes of a virtual GPU were ended to get memory back")
  @Category({"vgpu", "Memory"})
  @StackTrace(false)
  static final class EndedByReclaim extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Processes")
    @Nullable String processes;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.EndedByReclaim ended) {
      EndedByReclaim event = new EndedByReclaim();
      if (event.shouldCommit()) {
        event.virtualGpu = ended.virtualGpu();
        event.processes = ended.processes().toString();
        event.reason = ended.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.HeldBack")
  @Label("Held Back")
  @Description("A tenant whose memory was reclaimed may not start again yet")
  @Category({"vgpu", "Memory"})
  @StackTrace(false)
  static final class HeldBack extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.HeldBack held) {
      HeldBack event = new HeldBack();
      if (event.shouldCommit()) {
        event.virtualGpu = held.virtualGpu();
        event.reason = held.reason();
        event.commit();
      }
    }
  }
}
