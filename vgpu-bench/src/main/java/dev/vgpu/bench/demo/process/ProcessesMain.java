package dev.vgpu.bench.demo.process;

import static java.util.Objects.requireNonNull;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.bench.demo.figure.DemoJson;
import dev.vgpu.bench.demo.figure.Disturbance;
import dev.vgpu.cli.time.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/**
 * Runs programs that share an emulated device, and prints their figures as one JSON object, the
 * last line of standard output. Each line before names a step that begins. It is a separate
 * process, so that its environment can name the emulator and a separate run directory.
 */
public final class ProcessesMain {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final long SAMPLE_NS = 50_000_000;
  private static final double NS_PER_S = 1e9;
  // Before shares are measured, programs start and their first kernels are measured.
  private static final double SETTLE = 0.5;
  private static final MemorySize HOARD_QUOTA = MemorySize.ofMebibytes(1024);
  private static final List<ProcessTenant> THREE =
      List.of(ProcessTenant.FIXED, ProcessTenant.BURST, ProcessTenant.REST);

  private final GpuPool pool;
  private final ProcessPrograms programs;
  private final ProcessPhases phases;
  private final DemoBackend by;
  private final NanoClock clock = NanoClock.system();
  private final Map<ProcessTenant, Tenancy> tenancies = new EnumMap<>(ProcessTenant.class);

  /** A program under its virtual GPU. */
  private record Tenancy(
      VirtualGpu gpu, String backend, ProcessPrograms.Started program, ProcessSamples samples) {}

  private ProcessesMain(
      GpuPool pool, ProcessPrograms programs, ProcessPhases phases, DemoBackend by) {
    this.pool = pool;
    this.programs = programs;
    this.phases = phases;
    this.by = by;
  }

  /**
   * Runs the programs.
   *
   * @param args the programs' directory, a directory for their output, the backend, and the lengths
   *     of the phases
   * @throws Exception if anything fails
   */
  public static void main(String[] args) throws Exception {
    ProcessPhases phases = ProcessPhases.ofArguments(Arrays.copyOfRange(args, 3, args.length));
    try (GpuPool pool = GpuPool.open();
        ProcessPrograms programs = new ProcessPrograms(Path.of(args[0]), Path.of(args[1]))) {
      ObjectNode figures =
          new ProcessesMain(pool, programs, phases, DemoBackend.valueOf(args[2])).run();
      System.out.println(JSON.writeValueAsString(figures));
    }
  }

  private ObjectNode run() throws IOException, InterruptedException {
    ObjectNode json = JSON.createObjectNode();
    json.put("device", pool.gpus().get(0).model());
    json.put("backend_asked", by.backendName());
    System.out.println("programs: online, alone");
    start(ProcessTenant.ONLINE, phases.alone());
    json.set("online_alone", end(ProcessTenant.ONLINE));
    Disturbance.Reading before = programs.reading();
    System.out.println(
        by.isSpatial()
            ? "programs: three with fixed shares, in space"
            : "programs: 50 fixed, 30 burst and best effort");
    for (ProcessTenant tenant : THREE) {
      start(tenant, 2 * phases.totalSeconds());
    }
    json.set("hoard", hoard());
    long fromNs = clock.nowNs();
    sample(phases.three());
    System.out.println(
        by.isSpatial()
            ? "programs: the same, and online beside them"
            : "programs: the same, and online preempts");
    long onlineNs = clock.nowNs();
    start(ProcessTenant.ONLINE, phases.together());
    sample(phases.together());
    long toNs = clock.nowNs();
    addDisturbance(json, programs.reading().since(before));
    json.set("online_beside", end(ProcessTenant.ONLINE));
    addTenants(json, fromNs, onlineNs, toNs);
    for (ProcessTenant tenant : THREE) {
      of(tenant).program().end();
      end(tenant);
    }
    return json;
  }

  private Tenancy of(ProcessTenant tenant) {
    return requireNonNull(tenancies.get(tenant), "tenant");
  }

  private void start(ProcessTenant tenant, double seconds) throws IOException {
    VirtualGpu gpu = pool.acquire(tenant.request(by));
    ProcessPrograms.Started program = programs.start(gpu, tenant.command(by, seconds));
    tenancies.put(tenant, new Tenancy(gpu, backend(gpu), program, new ProcessSamples()));
  }

  /** The backend that enforces the virtual GPU, read from its public lease. */
  private String backend(VirtualGpu gpu) {
    return pool.leases().stream()
        .filter(lease -> lease.id().equals(gpu.id()))
        .findFirst()
        .flatMap(GpuLease::backend)
        .orElse("none");
  }

  private ObjectNode end(ProcessTenant tenant) throws IOException, InterruptedException {
    Tenancy ended = of(tenant);
    ObjectNode figures = ended.program().figures();
    ended.gpu().close();
    return figures;
  }

  /** Runs a program that allocates as much memory as it gets. */
  private ObjectNode hoard() throws IOException, InterruptedException {
    VirtualGpuRequest.Builder request =
        VirtualGpuRequest.builder()
            .name("hoard")
            .memory(HOARD_QUOTA)
            .policy(by.isSpatial() ? SharePolicy.FIXED_SHARE : SharePolicy.BEST_EFFORT);
    by.demand(request);
    if (by.isSpatial()) {
      request.computePercent(by.percent(ProcessTenant.ONLINE));
    }
    try (VirtualGpu gpu = pool.acquire(request.build())) {
      List<String> command = List.of("hoard", "--json", "--chunk=64MiB", "--least=1MiB");
      ObjectNode figures = programs.start(gpu, command).figures();
      return figures.put("quota_bytes", HOARD_QUOTA.bytes());
    }
  }

  private void sample(double seconds) throws InterruptedException {
    long untilNs = clock.nowNs() + (long) (seconds * NS_PER_S);
    for (long dueNs = clock.nowNs(); dueNs < untilNs; dueNs += SAMPLE_NS) {
      clock.sleepUntil(dueNs);
      sample();
    }
    clock.sleepUntil(untilNs);
    sample();
  }

  private void sample() {
    for (Tenancy tenancy : tenancies.values()) {
      if (!tenancy.gpu().isClosed()) {
        tenancy.samples().add(clock.nowNs(), tenancy.gpu().usage());
      }
    }
  }

  private static void addDisturbance(ObjectNode json, Disturbance disturbance) {
    DemoJson.put(json, "other_programs_cpu_percent", disturbance.otherPercent());
    DemoJson.put(json, "stolen_cpu_percent", disturbance.stolenPercent());
    json.put("machine_was_busy", disturbance.isLarge());
  }

  private void addTenants(ObjectNode json, long fromNs, long onlineNs, long toNs) {
    long settleNs = (long) (Math.min(SETTLE, phases.three() / 4) * NS_PER_S);
    long binNs = (long) (NS_PER_S / (phases.three() < 2 ? 10 : 2));
    json.put("bin_s", binNs / NS_PER_S).put("online_from_s", (onlineNs - fromNs) / NS_PER_S);
    for (ProcessTenant tenant : ProcessTenant.values()) {
      ProcessSamples sampled = of(tenant).samples();
      ObjectNode row = json.withArray("tenants").addObject();
      VirtualGpuRequest request = tenant.request(by);
      row.put("name", tenant.title(by)).put("asked_percent", by.percent(tenant));
      row.put("class", request.preemptionClass().name()).put("policy", request.policy().name());
      row.put("backend", of(tenant).backend());
      if (tenant != ProcessTenant.ONLINE) {
        DemoJson.put(row, "held_three_percent", sampled.heldPercent(fromNs + settleNs, onlineNs));
      }
      DemoJson.put(row, "held_together_percent", sampled.heldPercent(onlineNs + settleNs, toNs));
      row.put("memory_peak_bytes", sampled.memoryPeakBytes());
      row.put("memory_quota_bytes", request.memory().bytes());
      row.put("preemptions", of(tenant).gpu().usage().preemptions());
      ArrayNode series = row.putArray("series");
      for (long binFromNs = fromNs; binFromNs + binNs <= toNs; binFromNs += binNs) {
        double held = sampled.heldPercent(binFromNs, binFromNs + binNs);
        series.add(Double.isNaN(held) ? 0 : Math.round(held * 10) / 10.0);
      }
    }
  }
}
