package dev.vgpu.core.pool;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VirtualGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;

/**
 * A process of a node, started by tests. It executes commands from its standard input, one a line,
 * and answers each with one line. It ends at the end of its input.
 */
final class SeatProcess {
  private static final class Worker {
    final AtomicLong calls = new AtomicLong();
    final AtomicLong worstNs = new AtomicLong();
    volatile String failure = "";
  }

  private final GpuPool pool;
  private final Map<String, VirtualGpu> gpus = new ConcurrentHashMap<>();
  private final Map<String, Worker> workers = new ConcurrentHashMap<>();

  private SeatProcess(GpuPool pool) {
    this.pool = pool;
  }

  /** Arguments: the run directory and the GPU's name. */
  public static void main(String[] arguments) throws Exception {
    GpuPoolOptions options =
        GpuPoolOptions.builder()
            .runDirectory(Path.of(arguments[0]))
            .gpus(List.of(Pools.gpu(arguments[1])))
            .build();
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    try (GpuPool pool = GpuPool.open(options)) {
      System.out.println("ready");
      SeatProcess process = new SeatProcess(pool);
      for (String line = in.readLine(); line != null; line = in.readLine()) {
        System.out.println(process.answer(line.split(" ", -1)));
      }
    } catch (RuntimeException e) {
      System.out.println("failed " + e);
    }
  }

  private String answer(String[] words) throws InterruptedException, IOException {
    try {
      return switch (words[0]) {
        case "acquire" -> acquire(words[1], Integer.parseInt(words[2]));
        case "work" -> work(words[1], Long.parseLong(words[2]) * 1000);
        case "calls" -> "" + worker(words[1]).calls;
        case "worst" -> "" + worker(words[1]).worstNs.getAndSet(0) / 1_000_000.0;
        case "failure" -> worker(words[1]).failure;
        case "close" -> {
          gpus.get(words[1]).close();
          yield "closed";
        }
        case "used" -> "" + gpus.get(words[1]).usage().gpuTime().toNanos();
        case "metered" ->
            pool.usageSince(Instant.EPOCH).stream()
                .filter(record -> record.virtualGpu().equals(words[1]))
                .map(record -> record.gpuTime().toNanos() + (record.isClosed() ? " closed" : ""))
                .collect(Collectors.joining(","));
        case "sleep" -> {
          LockSupport.parkNanos(Long.parseLong(words[1]) * 1_000_000);
          yield "slept";
        }
        case "leases" ->
            pool.leases().stream().map(GpuLease::id).sorted().collect(Collectors.joining(" "));
        default -> "what?";
      };
    } catch (RuntimeException e) {
      return "failed " + e;
    }
  }

  private Worker worker(String id) {
    return workers.computeIfAbsent(id, key -> new Worker());
  }

  private String acquire(String name, int percent) throws InterruptedException {
    Optional<VirtualGpu> gpu =
        pool.tryAcquire(
            VirtualGpuRequest.builder()
                .name(name)
                .memory(Pools.request(PreemptionClass.NEARLINE).build().memory())
                .policy(SharePolicy.BURST_SHARE)
                .computePercent(percent)
                .build(),
            Duration.ofSeconds(20));
    if (gpu.isEmpty()) {
      return "refused";
    }
    gpus.put(gpu.get().id(), gpu.get());
    return gpu.get().id();
  }

  /** Makes calls in a loop. */
  private String work(String id, long callNs) {
    VirtualGpu gpu = gpus.get(id);
    Worker worker = worker(id);
    Thread thread =
        new Thread(
            () -> {
              long lastNs = NanoClock.SYSTEM.nanoTime();
              try {
                while (!gpu.isClosed()) {
                  gpu.run(() -> spin(callNs));
                  long nowNs = NanoClock.SYSTEM.nanoTime();
                  worker.worstNs.accumulateAndGet(nowNs - lastNs, Math::max);
                  lastNs = nowNs;
                  worker.calls.incrementAndGet();
                }
              } catch (InterruptedException | RuntimeException e) {
                worker.failure = e.toString();
              }
            });
    thread.setDaemon(true);
    thread.start();
    return "working";
  }

  private static void spin(long ns) {
    long untilNs = NanoClock.SYSTEM.nanoTime() + ns;
    while (NanoClock.SYSTEM.nanoTime() < untilNs) {
      Thread.onSpinWait();
    }
  }
}
