package dev.vgpu.bench.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.cli.simulation.MixFile;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.simulation.Mix;
import dev.vgpu.simulation.MixResult;
import dev.vgpu.simulation.Simulation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * A simulated mix agrees with the same mix of real processes over the emulator. Compared are each
 * tenant's part of the work done, and the work done per second of GPU time charged. The part of a
 * fixed share is that of all time; the part of the others is that of the work of all of them: what
 * hand-overs cost depends on how fast the machine's processors are, and is theirs.
 */
class AgreementIT {
  /** The accepted difference, in percent. */
  private static final double PERCENT = 3;

  /** The same for a part of the time: hand-overs of the real GPU take some of it. */
  private static final double PERCENT_OF_TIME = 5;

  private static final long WARM_UP_MS = 1_500;
  private static final long WINDOW_MS = 8_000;

  /** On a busy machine turns end late, and compensation takes longer. */
  private static final int MOST_WINDOWS = 5;

  private static final MemorySize QUOTA = MemorySize.ofMebibytes(512);

  @TempDir private Path directory;

  /**
   * The result of one tenant.
   *
   * @param part its work, as a part of the time, or of the work of all without a fixed share
   * @param isOfTime whether it is a part of the time
   * @param perGpuSecond its kernels per second of GPU time charged to it
   */
  private record Share(double part, boolean isOfTime, double perGpuSecond) {}

  @Test
  void offlineTenantsThatAlwaysHaveWork() throws Exception {
    compare(
        """
        tenants:
          - {name: half, policy: burst, share: 50, class: offline, arrivals: closedLoop,
             request: {kernels: 1, kernelTime: 1ms}}
          - {name: third, policy: burst, share: 30, class: offline, arrivals: closedLoop,
             request: {kernels: 1, kernelTime: 700us}}
          - {name: fifth, policy: burst, share: 20, class: offline, arrivals: closedLoop,
             request: {kernels: 1, kernelTime: 500us}}
        """,
        Map.of(
            "half", List.of("--us=1000"),
            "third", List.of("--us=700"),
            "fifth", List.of("--us=500")));
  }

  @Test
  void onlineTenantAtItsCapBesideOfflineOnes() throws Exception {
    compare(
        """
        tenants:
          - {name: online, policy: fixed, share: 40, class: online, arrivals: closedLoop,
             request: {kernels: 1, kernelTime: 500us}}
          - {name: large, policy: burst, share: 70, class: offline, arrivals: closedLoop,
             request: {kernels: 1, kernelTime: 1ms}}
          - {name: small, policy: burst, share: 30, class: offline, arrivals: closedLoop,
             request: {kernels: 1, kernelTime: 1ms}}
        """,
        Map.of(
            "online", List.of("--us=500"),
            "large", List.of("--us=1000"),
            "small", List.of("--us=1000")));
  }

  private void compare(String text, Map<String, List<String>> programs) throws Exception {
    Path file = directory.resolve("mix.yaml");
    Files.writeString(file, "duration: 60s\nwarmUp: 2s\n" + text);
    Mix mix = MixFile.read(file, MixFile.Overrides.NONE).mix();
    Map<String, Share> simulated = simulated(mix);
    Map<String, Share> real = real(mix, programs, simulated);
    String table = table(simulated, real);
    System.err.print(table);
    assertThat(agree(simulated, real)).as("%s", table).isTrue();
  }

  private static String table(Map<String, Share> simulated, Map<String, Share> real) {
    StringBuilder table =
        new StringBuilder("part of the time or of the work, kernels a charged GPU second:\n");
    for (String name : simulated.keySet()) {
      table.append(
          String.format(
              Locale.ROOT,
              "%-8s simulated %6.2f %% %8.1f, real %6.2f %% %8.1f%n",
              name,
              100 * simulated.get(name).part(),
              simulated.get(name).perGpuSecond(),
              100 * real.get(name).part(),
              real.get(name).perGpuSecond()));
    }
    return table.toString();
  }

  private static boolean agree(Map<String, Share> simulated, Map<String, Share> real) {
    return simulated.keySet().stream()
        .allMatch(
            name ->
                isClose(
                        real.get(name).part(),
                        simulated.get(name).part(),
                        simulated.get(name).isOfTime() ? PERCENT_OF_TIME : PERCENT)
                    && isClose(
                        real.get(name).perGpuSecond(),
                        simulated.get(name).perGpuSecond(),
                        PERCENT));
  }

  private static boolean isClose(double real, double simulated, double percent) {
    return Math.abs(real - simulated) <= percent / 100 * simulated;
  }

  private static Map<String, Share> simulated(Mix mix) {
    MixResult result = Simulation.run(mix, passedNs -> {});
    Map<String, Double> kernels = new LinkedHashMap<>();
    Map<String, Double> gpuNs = new LinkedHashMap<>();
    for (MixResult.OfTenant tenant : result.tenants()) {
      kernels.put(tenant.name(), (double) tenant.kernels());
      gpuNs.put(tenant.name(), (double) tenant.measuredNs());
    }
    return shares(mix, kernels, gpuNs, mix.durationNs() - mix.warmUpNs());
  }

  private static Map<String, Share> shares(
      Mix mix, Map<String, Double> kernels, Map<String, Double> gpuNs, long timeNs) {
    double surplus = 0;
    for (Mix.Member tenant : mix.tenants()) {
      surplus += isFixed(tenant) ? 0 : kernels.get(tenant.name()) * kernelNs(tenant);
    }
    Map<String, Share> shares = new LinkedHashMap<>();
    for (Mix.Member tenant : mix.tenants()) {
      double did = kernels.get(tenant.name());
      double all = isFixed(tenant) ? (double) timeNs : surplus;
      shares.put(
          tenant.name(),
          new Share(
              did * kernelNs(tenant) / all, isFixed(tenant), did / gpuNs.get(tenant.name()) * 1e9));
    }
    return shares;
  }

  private static boolean isFixed(Mix.Member tenant) {
    return tenant.request().policy() == SharePolicy.FIXED_SHARE;
  }

  private static double kernelNs(Mix.Member tenant) {
    return tenant.shape().kernelTime().meanNs();
  }

  /** Measures windows with a common start until simulation and reality agree. */
  private static Map<String, Share> real(
      Mix mix, Map<String, List<String>> programs, Map<String, Share> simulated) throws Exception {
    Node node = Node.open(Map.of("VGPU_EMULATOR", "devices=1,memory=4GiB"));
    try {
      PoolProcess pool = node.openPool();
      for (Mix.Member tenant : mix.tenants()) {
        Map<String, String> place =
            pool.acquire(
                tenant.name(),
                tenant.request().policy(),
                tenant.request().computePercent().orElse(0),
                tenant.request().preemptionClass(),
                QUOTA);
        ProcessBuilder builder = new ProcessBuilder(program());
        builder.command().addAll(programs.get(tenant.name()));
        builder.command().add("--seconds=120");
        node.start(tenant.name(), builder, place);
      }
      NanoClock.sleepMillis(WARM_UP_MS);
      long beganNs = NanoClock.nanoTime();
      JsonNode before = pool.leases();
      Map<String, Share> real = Map.of();
      for (int i = 0; i < MOST_WINDOWS && (i == 0 || !agree(simulated, real)); i++) {
        NanoClock.sleepMillis(WINDOW_MS);
        JsonNode after = pool.leases();
        real = shares(mix, before, after, NanoClock.nanoTime() - beganNs);
      }
      return real;
    } finally {
      System.err.print(node.errors());
      node.close();
    }
  }

  private static Map<String, Share> shares(Mix mix, JsonNode before, JsonNode after, long timeNs) {
    Map<String, Double> kernels = new LinkedHashMap<>();
    Map<String, Double> gpuNs = new LinkedHashMap<>();
    for (Mix.Member tenant : mix.tenants()) {
      kernels.put(tenant.name(), grown(tenant.name(), "launches", before, after));
      gpuNs.put(tenant.name(), grown(tenant.name(), "gpu_ns", before, after));
      assertThat(gpuNs.get(tenant.name())).as("%s ran", tenant.name()).isPositive();
    }
    return shares(mix, kernels, gpuNs, timeNs);
  }

  private static double grown(String name, String key, JsonNode before, JsonNode after) {
    return lease(name, after).path(key).asDouble() - lease(name, before).path(key).asDouble();
  }

  private static JsonNode lease(String name, JsonNode leases) {
    for (JsonNode lease : leases) {
      if (lease.path("id").asText().startsWith(name)) {
        return lease;
      }
    }
    throw new AssertionError("no lease " + name + " in " + leases);
  }

  private static String program() {
    return Path.of(System.getProperty("vgpu.home"), "samples/cuda-programs/target/programs/spin")
        .toString();
  }
}
