package dev.vgpu.dashboard;

import com.sun.management.ThreadMXBean;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Measures what a dashboard of eight GPUs and 64 tenants costs while ten clients watch: the
 * processor time of its threads, and the memory that they allocate. The clients are another
 * process. Half of the tenants make calls meanwhile. Not part of the build. Argument: for how many
 * seconds to measure, after as many to warm up.
 */
public final class DashboardCost {
  private static final int TENANTS = 64;
  private static final int CLIENTS = 10;
  private static final String THREADS = "vgpu-web";
  private static final ThreadMXBean BEAN = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private record Spent(long cpuNs, long bytes, int threads) {
    static Spent now() {
      long cpuNs = 0;
      long bytes = 0;
      int threads = 0;
      for (long id : BEAN.getAllThreadIds()) {
        var thread = BEAN.getThreadInfo(id);
        if (thread != null && thread.getThreadName().startsWith(THREADS)) {
          cpuNs += Math.max(0, BEAN.getThreadCpuTime(id));
          bytes += Math.max(0, BEAN.getThreadAllocatedBytes(id));
          threads++;
        }
      }
      return new Spent(cpuNs, bytes, threads);
    }
  }

  private DashboardCost() {}

  /** Measures; with two arguments, it is the clients' process. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 2) {
      watch(URI.create(arguments[0]), Integer.parseInt(arguments[1]));
      return;
    }
    int seconds = arguments.length > 0 ? Integer.parseInt(arguments[0]) : 60;
    DashboardOptions served =
        DashboardOptions.builder().address(WebAddress.fromString("0")).build();
    try (GpuPool pool = SimulatedGpu.pool(8)) {
      List<VirtualGpu> held = IntStream.range(0, TENANTS).mapToObj(i -> start(pool, i)).toList();
      try (Dashboard dashboard = Dashboard.open(pool, served)) {
        Process clients = clients("http://" + dashboard.address().inUrl() + "/events");
        try {
          measure(dashboard, seconds);
        } finally {
          clients.destroyForcibly().waitFor();
        }
      }
      held.forEach(VirtualGpu::close);
    }
  }

  private static VirtualGpu start(GpuPool pool, int number) {
    VirtualGpu gpu =
        pool.acquire(
            VirtualGpuRequest.builder()
                .name("tenant-" + number)
                .memory(MemorySize.ofGibibytes(4))
                .build());
    if (number % 2 == 0) {
      Thread thread = new Thread(() -> work(gpu), "tenant");
      thread.setDaemon(true);
      thread.start();
    }
    return gpu;
  }

  private static void work(VirtualGpu gpu) {
    try {
      while (!gpu.isClosed()) {
        gpu.call(
            () -> {
              Await.pause(20);
              return true;
            });
        Await.pause(20);
      }
    } catch (Exception e) {
      System.out.println("a tenant ends: " + e);
    }
  }

  private static void measure(Dashboard dashboard, int seconds) throws Exception {
    Await.until(() -> dashboard.viewers() == CLIENTS);
    Await.pause(1_000L * seconds);
    Spent before = Spent.now();
    long beforeNs = NanoClock.nowNs();
    Await.pause(1_000L * seconds);
    Spent after = Spent.now();
    double lengthNs = NanoClock.nowNs() - beforeNs;
    System.out.printf(
        Locale.ROOT,
        "8 GPUs, %d tenants, %d clients, 1 Hz: %.2f %% of a core (wanted: at most 2 %%), %.0f KiB/s"
            + " allocated, %d threads, over %.0f s%n",
        TENANTS,
        dashboard.viewers(),
        100 * (after.cpuNs() - before.cpuNs()) / lengthNs,
        (after.bytes() - before.bytes()) / (lengthNs / 1e9) / 1024,
        after.threads(),
        lengthNs / 1e9);
  }

  private static Process clients(String url) throws IOException {
    return new ProcessBuilder(
            ProcessHandle.current().info().command().orElse("java"),
            "-XX:+UseSerialGC",
            "-cp",
            System.getProperty("java.class.path"),
            DashboardCost.class.getName(),
            url,
            String.valueOf(CLIENTS))
        .inheritIO()
        .start();
  }

  private static void watch(URI url, int count) throws Exception {
    HttpClient client = HttpClient.newHttpClient();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      HttpResponse<InputStream> events =
          client.send(
              HttpRequest.newBuilder(url).build(), HttpResponse.BodyHandlers.ofInputStream());
      Thread thread = new Thread(() -> drain(events.body()));
      thread.start();
      threads.add(thread);
    }
    for (Thread thread : threads) {
      thread.join();
    }
  }

  private static void drain(InputStream events) {
    try (events) {
      long bytes = events.transferTo(OutputStream.nullOutputStream());
      System.out.println("a client ends after " + bytes + " bytes");
    } catch (IOException e) {
      System.out.println("a client ends: " + e);
    }
  }
}
