package dev.vgpu.bench.harness;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemoryMobility;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryUsage;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The main class of a {@link PoolProcess}: opens a pool, executes the commands on standard input,
 * and exits at their end.
 */
final class PoolMain {
  private static final Duration PATIENCE = Duration.ofSeconds(10);

  private final GpuPool pool;
  private final Map<String, VirtualGpu> gpus = new HashMap<>();
  private @Nullable Garbage garbage;

  private PoolMain(GpuPool pool) {
    this.pool = pool;
  }

  /**
   * Runs the process.
   *
   * @param args {@code strict}: turns never overlap; {@code floor=PERCENT}: the offline floor;
   *     none: the defaults
   * @throws IOException if the input fails
   */
  public static void main(String[] args) throws IOException {
    long beginNs = NanoClock.nanoTime();
    // First of all, because this measures what opening a pool costs in a cold JVM.
    try (GpuPool pool = args.length == 0 ? GpuPool.open() : GpuPool.open(options(args))) {
      double openMs = (NanoClock.nanoTime() - beginNs) / 1e6;
      double beforeMs = mainAfterStartMs(beginNs);
      String gpu = pool.gpus().get(0).id().value();
      print(Map.of("open_ms", openMs, "since_start_ms", beforeMs + openMs, "gpu", gpu));
      PoolMain main = new PoolMain(pool);
      BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
      for (String line = input.readLine(); line != null; line = input.readLine()) {
        main.answer(line.split(" ", -1));
      }
    }
  }

  private static GpuPoolOptions options(String[] args) {
    GpuSettings.Builder settings = GpuSettings.builder();
    for (String arg : args) {
      if (arg.startsWith("floor=")) {
        settings.offlineFloorPercent(Integer.parseInt(arg.substring("floor=".length())));
      } else if (arg.equals("strict")) {
        settings.sharing(GpuSettings.Sharing.STRICT);
      } else {
        throw new IllegalArgumentException("what is " + arg);
      }
    }
    return GpuPoolOptions.builder().gpuSettings(settings.build()).build();
  }

  private static double mainAfterStartMs(long beginNs) {
    long sinceBeginNs = NanoClock.nanoTime() - beginNs;
    long upMs = ManagementFactory.getRuntimeMXBean().getUptime();
    return Math.max(0, upMs - sinceBeginNs / 1e6);
  }

  private static void print(Map<String, ?> answer) throws IOException {
    System.out.println(new ObjectMapper().writeValueAsString(answer));
  }

  private void answer(String[] words) throws IOException {
    try {
      print(
          switch (words[0]) {
            case "acquire" -> Map.of("environment", acquire(words));
            case "release" -> release(words[1]);
            case "suspend", "resume" -> change(words);
            case "gpus" -> Map.of("gpus", gpuNames());
            case "truth" -> Map.of("gpus", truth());
            case "heap" -> heap();
            case "leases" -> Map.of("leases", leases());
            case "litter" -> litter();
            case "tidy" -> tidy();
            case "states" -> Map.of("states", states());
            default -> Map.of("error", "what is " + words[0]);
          });
    } catch (VgpuException | IllegalStateException | IllegalArgumentException e) {
      print(Map.of("error", e.toString()));
    }
  }

  private Map<String, String> acquire(String[] words) {
    VirtualGpuRequest.Builder request =
        VirtualGpuRequest.builder()
            .name(words[1])
            .policy(SharePolicy.valueOf(words[2]))
            .preemptionClass(PreemptionClass.valueOf(words[4]))
            .memory(MemorySize.ofBytes(Long.parseLong(words[5])));
    if (words.length > 6 && words[6].equals("movable")) {
      request.memoryMobility(MemoryMobility.MOVABLE);
    }
    if (words.length > 7) {
      request.gpu(new GpuId(words[7]));
    }
    int percent = Integer.parseInt(words[3]);
    if (percent > 0) {
      request.computePercent(percent);
    }
    VirtualGpu gpu = acquired(request.build());
    gpus.put(words[1], gpu);
    return gpu.environment();
  }

  /** The quota of a released lease may stay taken until the end of a killed program is known. */
  private VirtualGpu acquired(VirtualGpuRequest request) {
    try {
      Optional<VirtualGpu> gpu = pool.tryAcquire(request, PATIENCE);
      return gpu.isPresent() ? gpu.get() : pool.acquire(request); // throws with the reason
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("interrupted", e);
    }
  }

  private Map<String, Object> change(String[] words) {
    VirtualGpu gpu = Objects.requireNonNull(gpus.get(words[1]), words[1]);
    long beginNs = NanoClock.nanoTime();
    if (words[0].equals("suspend")) {
      gpu.suspend();
    } else {
      gpu.resume();
    }
    return Map.of("ms", (NanoClock.nanoTime() - beginNs) / 1e6);
  }

  private Map<String, String> release(String name) {
    Objects.requireNonNull(gpus.remove(name), name).close();
    return Map.of("released", name);
  }

  private Map<String, String> litter() {
    garbage = Garbage.start();
    return Map.of("litter", "begun");
  }

  private Map<String, Object> tidy() {
    return Objects.requireNonNull(garbage, "no litter").stop();
  }

  private List<Map<String, Object>> states() {
    List<Map<String, Object>> all = new ArrayList<>();
    for (GpuState state : pool.states()) {
      all.add(
          Map.of(
              "gpu", state.gpu().value(),
              "mode", state.mode().toString(),
              "reason", state.reason(),
              "switches", state.switches()));
    }
    return all;
  }

  private List<String> gpuNames() {
    return pool.gpus().stream().map(gpu -> gpu.id().value()).toList();
  }

  /** The memory of all processes according to the driver, and according to the leases' ledgers. */
  private Map<String, Map<String, Long>> truth() {
    Map<String, Map<String, Long>> all = new HashMap<>();
    for (GpuReading reading : pool.readings()) {
      long held =
          reading.processes().stream()
              .mapToLong(process -> process.memory().map(MemorySize::bytes).orElse(0L))
              .sum();
      Map<String, Long> gpu = new HashMap<>(Map.of("truth", held, "ledger", 0L));
      all.put(reading.gpu().value(), gpu);
    }
    for (GpuLease lease : pool.leases()) {
      Map<String, Long> gpu = all.get(lease.gpu().value());
      if (gpu != null) {
        gpu.merge("ledger", lease.usage().memoryUsed().bytes(), Long::sum);
      }
    }
    return all;
  }

  private static Map<String, Object> heap() {
    System.gc();
    MemoryUsage heap = ManagementFactory.getMemoryMXBean().getHeapMemoryUsage();
    return Map.of("heap", heap.getUsed());
  }

  private List<Map<String, Object>> leases() {
    List<Map<String, Object>> all = new ArrayList<>();
    for (GpuLease lease : pool.leases()) {
      all.add(
          Map.of(
              "id", lease.id(),
              "memory", lease.usage().memoryUsed().bytes(),
              "processes", lease.usage().processes(),
              "gpu_ns", lease.usage().gpuTime().toNanos(),
              "launches", lease.usage().launches(),
              "denied", lease.usage().deniedAllocations()));
    }
    return all;
  }
}
