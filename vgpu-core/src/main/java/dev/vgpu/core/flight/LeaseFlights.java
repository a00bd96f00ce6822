package dev.vgpu.core.flight;

import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import jdk.jfr.Category;
import jdk.jfr.DataAmount;
import jdk.jfr.Description;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Percentage;
import jdk.jfr.StackTrace;
import jdk.jfr.Timespan;
import org.jspecify.annotations.Nullable;

/** Flight events about the life of virtual GPUs. */
@SuppressWarnings("UnusedVariable") // the recorder reads the fields
final class LeaseFlights {
  private LeaseFlights() {}

  @Name("dev.vgpu.Acquired")
  @Label("Virtual GPU Acquired")
  @Description("A virtual GPU was granted")
  @Category({"vgpu", "Leases"})
  @StackTrace(false)
  static final class Acquired extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("GPU")
    @Nullable String gpu;

    @Label("Class")
    @Nullable String preemptionClass;

    @Label("Policy")
    @Nullable String policy;

    @Label("Share")
    @Percentage
    float share;

    @Label("Memory Quota")
    @DataAmount
    long quota;

    static void put(GpuEvent.Acquired acquired) {
      Acquired event = new Acquired();
      if (event.shouldCommit()) {
        event.virtualGpu = acquired.virtualGpu();
        event.gpu = acquired.gpu().value();
        event.preemptionClass = acquired.request().preemptionClass().name();
        event.policy = acquired.request().policy().name();
        event.share = share(acquired.request());
        event.quota = acquired.request().memory().bytes();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Refused")
  @Label("Request Refused")
  @Description("A request was refused, or gave up waiting")
  @Category({"vgpu", "Leases"})
  @StackTrace(false)
  static final class Refused extends Event {
    @Label("Name")
    @Nullable String name;

    @Label("Class")
    @Nullable String preemptionClass;

    @Label("Policy")
    @Nullable String policy;

    @Label("Share")
    @Percentage
    float share;

    @Label("Memory Quota")
    @DataAmount
    long quota;

    @Label("Reason")
    @Nullable String reason;

    static void put(GpuEvent.Refused refused) {
      Refused event = new Refused();
      if (event.shouldCommit()) {
        event.name = refused.virtualGpu();
        event.preemptionClass = refused.request().preemptionClass().name();
        event.policy = refused.request().policy().name();
        event.share = share(refused.request());
        event.quota = refused.request().memory().bytes();
        event.reason = refused.reason();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Resized")
  @Label("Virtual GPU Resized")
  @Description("What a virtual GPU is granted was replaced")
  @Category({"vgpu", "Leases"})
  @StackTrace(false)
  static final class Resized extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("Before: Class")
    @Nullable String beforePreemptionClass;

    @Label("Before: Policy")
    @Nullable String beforePolicy;

    @Label("Before: Share")
    @Percentage
    float beforeShare;

    @Label("Before: Memory Quota")
    @DataAmount
    long beforeQuota;

    @Label("After: Class")
    @Nullable String afterPreemptionClass;

    @Label("After: Policy")
    @Nullable String afterPolicy;

    @Label("After: Share")
    @Percentage
    float afterShare;

    @Label("After: Memory Quota")
    @DataAmount
    long afterQuota;

    static void put(GpuEvent.Resized resized) {
      Resized event = new Resized();
      if (event.shouldCommit()) {
        event.virtualGpu = resized.virtualGpu();
        event.beforePreemptionClass = resized.before().preemptionClass().name();
        event.beforePolicy = resized.before().policy().name();
        event.beforeShare = share(resized.before());
        event.beforeQuota = resized.before().memory().bytes();
        event.afterPreemptionClass = resized.after().preemptionClass().name();
        event.afterPolicy = resized.after().policy().name();
        event.afterShare = share(resized.after());
        event.afterQuota = resized.after().memory().bytes();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Closed")
  @Label("Virtual GPU Closed")
  @Description("A virtual GPU was closed and what it held is free again")
  @Category({"vgpu", "Leases"})
  @StackTrace(false)
  static final class Closed extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    @Label("GPU Time")
    @Timespan
    long gpuTime;

    @Label("Calls")
    long calls;

    @Label("Launches")
    long launches;

    @Label("Preemptions")
    long preemptions;

    @Label("Denied Allocations")
    long deniedAllocations;

    static void put(GpuEvent.Closed closed) {
      Closed event = new Closed();
      if (event.shouldCommit()) {
        event.virtualGpu = closed.virtualGpu();
        event.gpuTime = closed.usage().gpuTime().toNanos();
        event.calls = closed.usage().calls();
        event.launches = closed.usage().launches();
        event.preemptions = closed.usage().preemptions();
        event.deniedAllocations = closed.usage().deniedAllocations();
        event.commit();
      }
    }
  }

  @Name("dev.vgpu.Leaked")
  @Label("Virtual GPU Leaked")
  @Description("A virtual GPU was not closed and became unreachable; it was closed for its owner")
  @Category({"vgpu", "Leases"})
  @StackTrace(false)
  static final class Leaked extends Event {
    @Label("Virtual GPU")
    @Nullable String virtualGpu;

    static void put(GpuEvent.Leaked leaked) {
      Leaked event = new Leaked();
      if (event.shouldCommit()) {
        event.virtualGpu = leaked.virtualGpu();
        event.commit();
      }
    }
  }

  /** The share as a fraction, which the recorder displays as a percentage; 0 for best effort. */
  private static float share(VirtualGpuRequest request) {
    return request.computePercent().orElse(0) / 100f;
  }
}
