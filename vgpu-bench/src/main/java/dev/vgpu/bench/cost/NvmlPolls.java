package dev.vgpu.bench.cost;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import dev.vgpu.GpuPool;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import java.io.IOException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.ServiceLoader;

/** The JVMs of {@link NvmlBench}: print figures, as NAME tab VALUE, and lines for people. */
public final class NvmlPolls {
  private static final int WARM_UP = 200;
  private static final int PARTS = 10;
  private static final double MILLI_NS = 1e6;
  private static final double KIB = 1024;

  private final GpuProvider provider;

  private NvmlPolls(GpuProvider provider) {
    this.provider = provider;
  }

  /**
   * Measures.
   *
   * @param args the measurement, and how often to repeat it
   * @throws Exception if it fails
   */
  public static void main(String[] args) throws Exception {
    GpuProvider provider =
        ServiceLoader.load(GpuProvider.class).stream()
            .map(ServiceLoader.Provider::get)
            .filter(each -> !each.gpus().isEmpty())
            .findFirst()
            .orElseThrow(() -> new IllegalStateException("no GPU is found"));
    NvmlPolls polls = new NvmlPolls(provider);
    int times = Integer.parseInt(args[1]);
    switch (args[0]) {
      case "snapshot" -> polls.snapshot(times);
      case "polls" -> polls.growth(times);
      default -> polls.watch(times);
    }
  }

  private List<GpuReading> read() {
    List<GpuReading> readings = provider.readings();
    if (readings.stream().anyMatch(reading -> reading.health() != GpuHealth.HEALTHY)) {
      throw new IllegalStateException("not healthy: " + readings);
    }
    return readings;
  }

  private static void figure(String name, double value) {
    System.out.printf(Locale.ROOT, "%s\t%.4f%n", name, value);
  }

  private void snapshot(int times) {
    for (int i = 0; i < WARM_UP; i++) {
      List<GpuReading> ignored = read();
    }
    double[] ms = new double[times];
    int processes = 0;
    for (int i = 0; i < times; i++) {
      long beginNs = NanoClock.nanoTime();
      List<GpuReading> readings = read();
      ms[i] = (NanoClock.nanoTime() - beginNs) / MILLI_NS;
      processes = readings.stream().mapToInt(reading -> reading.processes().size()).sum();
    }
    Arrays.sort(ms);
    double p99 = ms[(int) (times * 0.99)];
    figure("snapshot_processes", processes);
    figure("snapshot_median_ms", ms[times / 2]);
    figure("snapshot_p99_ms", p99);
    figure("snapshot_worst_ms", ms[times - 1]);
    System.out.printf(
        Locale.ROOT,
        "%-44s%11.3f ms%11.3f ms%11.3f ms%n",
        "  snapshot of 8 GPUs, " + processes + " processes",
        ms[times / 2],
        p99,
        ms[times - 1]);
  }

  // ---- growth

  private record Memory(double heapKib, double directKib, double residentKib) {
    static Memory now() throws IOException {
      ManagementFactory.getMemoryMXBean().gc();
      ManagementFactory.getMemoryMXBean().gc();
      double direct =
          ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
              .filter(pool -> pool.getName().equals("direct"))
              .mapToLong(BufferPoolMXBean::getMemoryUsed)
              .sum();
      double resident =
          Files.readAllLines(Path.of("/proc/self/status")).stream()
              .filter(line -> line.startsWith("VmRSS:"))
              .map(line -> line.replaceAll("\\D", ""))
              .mapToDouble(Double::parseDouble)
              .findFirst()
              .orElse(0);
      long heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
      return new Memory(heap / KIB, direct / KIB, resident);
    }
  }

  /** Compares the memory after a tenth of the polls with the memory after all. */
  private void growth(int times) throws IOException {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    for (int i = 0; i < times / PARTS; i++) {
      List<GpuReading> ignored = read();
    }
    Memory before = Memory.now();
    long allocated = threads.getCurrentThreadAllocatedBytes();
    long beginNs = NanoClock.nanoTime();
    int counted = times - times / PARTS;
    for (int i = 0; i < counted; i++) {
      List<GpuReading> ignored = read();
    }
    double us = (NanoClock.nanoTime() - beginNs) / 1e3 / counted;
    double bytes = (threads.getCurrentThreadAllocatedBytes() - allocated) / (double) counted;
    Memory after = Memory.now();
    figure("polls", times);
    figure("poll_mean_us", us);
    figure("poll_allocated_bytes", bytes);
    figure("poll_heap_growth_kib", after.heapKib() - before.heapKib());
    figure("poll_direct_growth_kib", after.directKib() - before.directKib());
    figure("poll_resident_growth_kib", after.residentKib() - before.residentKib());
    System.out.printf(
        Locale.ROOT,
        "  %,d polls of 1 GPU: %.1f us, %.0f bytes each; held %+.1f KiB heap, %+.1f direct, %+.0f RSS%n",
        times,
        us,
        bytes,
        after.heapKib() - before.heapKib(),
        after.directKib() - before.directKib(),
        after.residentKib() - before.residentKib());
  }

  // ---- watching

  /** The processor time of this process over some seconds, in percent of a core. */
  private double cores(int seconds, boolean polls) throws InterruptedException {
    OperatingSystemMXBean system =
        (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    long cpu = system.getProcessCpuTime();
    long beginNs = NanoClock.nanoTime();
    for (int i = 0; i < seconds; i++) {
      if (polls) {
        List<GpuReading> ignored = read();
      }
      NanoClock.sleepMillis(1_000);
    }
    return 100.0 * (system.getProcessCpuTime() - cpu) / (NanoClock.nanoTime() - beginNs);
  }

  private void watch(int seconds) throws InterruptedException {
    for (int i = 0; i < WARM_UP * PARTS; i++) {
      List<GpuReading> ignored = read();
    }
    NanoClock.sleepMillis(2_000); // until the compiler is done
    double idle = cores(seconds, false);
    double polled = cores(seconds, true);
    GpuPool.Listening watch = provider.watch(new Nobody());
    NanoClock.sleepMillis(500);
    double watched = cores(seconds, false);
    watch.close();
    figure("idle_core_percent", idle);
    figure("poll_1hz_core_percent", polled - idle);
    figure("watch_core_percent", watched - idle);
    System.out.printf(
        Locale.ROOT,
        "  8 GPUs: polled at 1 Hz %.2f %% of a core, watched for events %.2f %% (idle JVM %.2f %%)%n",
        polled - idle,
        watched - idle,
        idle);
  }

  private static final class Nobody implements GpuHealthListener {
    @Override
    public void changed(GpuId gpu, GpuHealth health, String reason) {}

    @Override
    public void fault(GpuId gpu, String reason) {}
  }
}
