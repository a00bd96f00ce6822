package dev.vgpu.cli.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import dev.vgpu.MemorySize;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.core.simulate.Mix;
import dev.vgpu.core.simulate.MixResult;
import dev.vgpu.core.simulate.Simulation;
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
 * tenant's part of all work done, and the work done per second of GPU time charged. Neither depends
 * on how fast the machine's processors are.
 */
class AgreementIT {
  /** The accepted difference, in percent. */
  private static final double PERCENT = 3;

  /**
   * The accepted difference beside a tenant at its cap. The capped tenant has its part of the time
   * whatever a hand-over costs. Offline tenants have the rest, and the simulation knows only a part
   * of those costs.
   */
  private static final double PERCENT_BESIDE_CAP = 5;

  private static final long WARM_UP_MS = 1_500;
  private static final long WINDOW_MS = 8_000;

  /** On a busy machine turns end late, and compensation takes longer. */
  private static final int MOST_WINDOWS = 5;

  private static final MemorySize QUOTA = MemorySize.ofMebibytes(512);

  @TempDir private Path directory;

  /**
   * The result of one tenant.
   *
   * @param part its kernels' part of all work done
   * @param perGpuSecond its kernels per second of GPU time charged to it
   */
  private record Share(double part, double perGpuSecond) {}

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
            "fifth", List.of("--us=500")),
        PERCENT);
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
            "small", List.of("--us=1000")),
        PERCENT_BESIDE_CAP);
  }

  private void compare(String text, Map<String, List<String>> programs, double percent)
      throws Exception {
    Path file = directory.resolve("mix.yaml");
    Files.writeString(file, "duration: 60s\nwarmUp: 2s\n" + text);
    Mix mix = MixFile.read(file, MixFile.Overrides.NONE).mix();
    Map<String, Share> simulated = simulated(mix);
    Map<String, Share> real = real(mix, programs, simulated, percent);
    String table = table(simulated, real);
    System.err.print(table);
    assertThat(agree(simulated, real, percent)).as("%s", table).isTrue();
  }

  private static String table(Map<String, Share> simulated, Map<String, Share> real) {
    StringBuilder table = new StringBuilder("part of the work, kernels a charged GPU second:\n");
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

  private static boolean agree(
      Map<String, Share> simulated, Map<String, Share> real, double percent) {
    return simulated.keySet().stream()
        .allMatch(
            name ->
                isClose(real.get(name).part(), simulated.get(name).part(), percent)
                    && isClose(
                        real.get(name).perGpuSecond(),
                        simulated.get(name).perGpuSecond(),
                        percent));
  }

  private static boolean isClose(double real, double simulated, double percent) {
    return Math.abs(real - simulated) <= percent / 100 * simulated;
  }

  private static Map<String, Share> simulated(Mix mix) {
    MixResult result = Simulation.run(mix, passedNs -> {});
    double all = 0;
    for (MixResult.OfTenant tenant : result.tenants()) {
      all += tenant.kernels() * kernelNs(mix, tenant.name());
    }
    Map<String, Share> shares = new LinkedHashMap<>();
    for (MixResult.OfTenant tenant : result.tenants()) {
      double kernels = tenant.kernels();
      shares.put(
          tenant.name(),
          new Share(
              kernels * kernelNs(mix, tenant.name()) / all, kernels / tenant.measuredNs() * 1e9));
    }
    return shares;
  }

  private static double kernelNs(Mix mix, String name) {
    for (Mix.Member tenant : mix.tenants()) {
      if (tenant.name().equals(name)) {
        return tenant.shape().kernelTime().meanNs();
      }
    }
    throw new AssertionError("no tenant " + name);
  }

  /** Measures windows with a common start until simulation and reality agree. */
  private static Map<String, Share> real(
      Mix mix, Map<String, List<String>> programs, Map<String, Share> simulated, double percent)
      throws Exception {
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
      JsonNode before = pool.leases();
      Map<String, Share> real = Map.of();
      for (int i = 0; i < MOST_WINDOWS && (i == 0 || !agree(simulated, real, percent)); i++) {
        NanoClock.sleepMillis(WINDOW_MS);
        real = shares(mix, before, pool.leases());
      }
      return real;
    } finally {
      System.err.print(node.errors());
      node.close();
    }
  }

  private static Map<String, Share> shares(Mix mix, JsonNode before, JsonNode after) {
    double all = 0;
    for (Mix.Member tenant : mix.tenants()) {
      all += grown(tenant.name(), "launches", before, after) * kernelNs(mix, tenant.name());
    }
    Map<String, Share> shares = new LinkedHashMap<>();
    for (Mix.Member tenant : mix.tenants()) {
      double gpuNs = grown(tenant.name(), "gpu_ns", before, after);
      double kernels = grown(tenant.name(), "launches", before, after);
      assertThat(gpuNs).as("%s ran", tenant.name()).isPositive();
      shares.put(
          tenant.name(),
          new Share(kernels * kernelNs(mix, tenant.name()) / all, kernels / gpuNs * 1e9));
    }
    return shares;
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
