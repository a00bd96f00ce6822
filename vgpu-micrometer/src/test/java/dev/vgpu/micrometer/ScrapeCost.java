package dev.vgpu.micrometer;

import com.sun.management.ThreadMXBean;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MockClock;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Measures a Prometheus scrape of a pool with 200 virtual GPUs, each scrape with a new snapshot of
 * the pool, beside a scrape of as many meters with the same names and tags that read constants. Not
 * part of the build. Argument: the number of virtual GPUs.
 */
public final class ScrapeCost {
  private static final int TENANTS = 200;
  private static final int WARM_UP = 300;
  private static final int SCRAPES = 300;
  private static final Duration BETWEEN = Duration.ofSeconds(15);

  private ScrapeCost() {}

  private record Cost(double medianMs, double p99Ms, double cpuMs, long bytes, int length) {
    void print(String what) {
      System.out.printf(
          Locale.ROOT,
          "%-28s median %.2f ms, p99 %.2f ms; processor time %.2f ms: %.3f %% of a core at a scrape"
              + " in %d s; allocates %d KiB, sends %d KiB%n",
          what,
          medianMs,
          p99Ms,
          cpuMs,
          100 * cpuMs / BETWEEN.toMillis(),
          BETWEEN.toSeconds(),
          bytes >> 10,
          length >> 10);
    }
  }

  /** Prints the figures. */
  public static void main(String[] arguments) {
    int tenants = arguments.length > 0 ? Integer.parseInt(arguments[0]) : TENANTS;
    List<VirtualGpu> gpus = new ArrayList<>();
    MockClock clock = new MockClock();
    PrometheusMeterRegistry ours = registry(clock);
    PrometheusMeterRegistry constants = registry(clock);
    try (GpuPool pool = TestGpu.pool(TestGpu.next());
        VgpuMetrics metrics = new VgpuMetrics(pool)) {
      for (int i = 0; i < tenants; i++) {
        gpus.add(
            pool.acquire(
                VirtualGpuRequest.builder()
                    .name("model-" + i)
                    .memory(MemorySize.ofMebibytes(16))
                    .build()));
      }
      metrics.bindTo(ours);
      ours.getMeters().forEach(meter -> copy(meter, constants));
      for (int round = 0; round < 2; round++) { // the first warms up
        System.out.println(round == 0 ? "warm-up:" : tenants + " virtual GPUs:");
        cost(constants, clock).print("the same meters, constants");
        cost(ours, clock).print("vgpu-micrometer");
      }
    } finally {
      gpus.forEach(VirtualGpu::close);
    }
  }

  private static PrometheusMeterRegistry registry(MockClock clock) {
    return new PrometheusMeterRegistry(PrometheusConfig.DEFAULT, new PrometheusRegistry(), clock);
  }

  private static void copy(Meter meter, PrometheusMeterRegistry to) {
    Meter.Id id = meter.getId();
    if (meter instanceof Gauge) {
      Gauge.builder(id.getName(), () -> 1)
          .tags(id.getTags())
          .baseUnit(id.getBaseUnit())
          .description(id.getDescription())
          .register(to);
    } else {
      FunctionCounter.builder(id.getName(), id, unused -> 1)
          .tags(id.getTags())
          .baseUnit(id.getBaseUnit())
          .description(id.getDescription())
          .register(to);
    }
  }

  private static Cost cost(PrometheusMeterRegistry registry, MockClock clock) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int length = 0;
    double[] ms = new double[SCRAPES];
    double[] cpuMs = new double[SCRAPES];
    long allocated = 0;
    for (int i = -WARM_UP; i < SCRAPES; i++) {
      clock.add(BETWEEN); // so that each scrape takes a new snapshot
      long bytes = threads.getCurrentThreadAllocatedBytes();
      long cpuNs = threads.getCurrentThreadCpuTime();
      long beganNs = System.nanoTime();
      length = registry.scrape().length();
      if (i >= 0) {
        ms[i] = (System.nanoTime() - beganNs) / 1e6;
        cpuMs[i] = (threads.getCurrentThreadCpuTime() - cpuNs) / 1e6;
        allocated += threads.getCurrentThreadAllocatedBytes() - bytes;
      }
    }
    Arrays.sort(ms);
    Arrays.sort(cpuMs);
    return new Cost(
        ms[SCRAPES / 2], ms[SCRAPES * 99 / 100], cpuMs[SCRAPES / 2], allocated / SCRAPES, length);
  }
}
