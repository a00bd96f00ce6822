package dev.vgpu.core.flight;

import dev.vgpu.watch.GpuUsage;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

/** Flight event with the usage of a virtual GPU so far. */
@SuppressWarnings("UnusedVariable") // the recorder reads the fields
@Name("dev.vgpu.Usage")
@Label("Usage")
@Description("What a virtual GPU has used so far, once a second")
@Category({"vgpu", "Usage"})
@StackTrace(false)
final class UsageFlight extends Event {
  @Label("Virtual GPU")
  @Nullable String virtualGpu;

  @Label("GPU Time")
  @Timespan
  long gpuTime;

  @Label("Memory Used")
  @DataAmount
  long memoryUsed;

  @Label("Memory Reserved")
  @DataAmount
  long memoryReserved;

  @Label("Launches")
  long launches;

  @Label("Calls")
  long calls;

  @Label("Waiting")
  int waiting;

  @Label("Preemptions")
  long preemptions;

  @Label("Denied Allocations")
  long deniedAllocations;

  @Label("Slowdown")
  @Description("GPU time per launch now, divided by the same alone; 0: not known")
  double slowdown;

  static void put(String virtualGpu, GpuUsage usage) {
    UsageFlight event = new UsageFlight();
    if (event.shouldCommit()) {
      event.virtualGpu = virtualGpu;
      event.gpuTime = usage.gpuTime().toNanos();
      event.memoryUsed = usage.memoryUsed().bytes();
      event.memoryReserved = usage.memoryReserved().bytes();
      event.launches = usage.launches();
      event.calls = usage.calls();
      event.waiting = usage.waiting();
      event.preemptions = usage.preemptions();
      event.deniedAllocations = usage.deniedAllocations();
      event.slowdown = usage.slowdown().orElse(0);
      event.commit();
    }
  }
}
