package dev.vgpu.cli.simulation;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.data.Percentage.withPercentage;

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
 * A mix that is simulated, and the same mix of real processes over the emulator, agree. What is
 * compared are parts of the GPU time that was used, and what was done in a second of it: neither
 * depends on how busy the machine's processors are.
 */
class AgreementIT {
  /** How far both may be apart. */
  private static final double PERCENT = 3;

  private static final long WARM_UP_MS = 1_500;
  private static final long WINDOW_MS = 12_000;
  private static final MemorySize QUOTA = MemorySize.ofMebibytes(512);

  @TempDir private Path directory;

  /** One tenant: the program that runs, and what it did. */
  private record Share(double gpuNs, double kernels, double part) {
    double perGpuSecond() {
      return kernels / gpuNs * 1e9;
    }
  }

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
             request: {kernels: 4, kernelTime: 500us}}
        """,
        Map.of(
            "half", List.of("--us=1000"),
            "third", List.of("--us=700"),
            "fifth", List.of("--us=500", "--sync=4")));
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
    Map<String, Share> real = real(mix, programs);
    StringBuilder table = new StringBuilder("part of the GPU time, kernels a GPU second:\n");
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
    System.err.print(table);
    for (String name : simulated.keySet()) {
      assertThat(real.get(name).part())
          .as("share of %s; %s", name, table)
          .isCloseTo(simulated.get(name).part(), withPercentage(PERCENT));
      assertThat(real.get(name).perGpuSecond())
          .as("throughput of %s; %s", name, table)
          .isCloseTo(simulated.get(name).perGpuSecond(), withPercentage(PERCENT));
    }
  }

  private static Map<String, Share> simulated(Mix mix) {
    MixResult result = Simulation.run(mix, passedNs -> {});
    double all = result.tenants().stream().mapToDouble(MixResult.OfTenant::usedNs).sum();
    Map<String, Share> shares = new LinkedHashMap<>();
    for (MixResult.OfTenant tenant : result.tenants()) {
      shares.put(
          tenant.name(), new Share(tenant.usedNs(), tenant.kernels(), tenant.usedNs() / all));
    }
    return shares;
  }

  private static Map<String, Share> real(Mix mix, Map<String, List<String>> programs)
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
      NanoClock.sleepMillis(WINDOW_MS);
      JsonNode after = pool.leases();
      return shares(mix, before, after);
    } finally {
      System.err.print(node.errors());
      node.close();
    }
  }

  private static Map<String, Share> shares(Mix mix, JsonNode before, JsonNode after) {
    double all = 0;
    for (Mix.Member tenant : mix.tenants()) {
      all += grown(tenant.name(), "gpu_ns", before, after);
    }
    Map<String, Share> shares = new LinkedHashMap<>();
    for (Mix.Member tenant : mix.tenants()) {
      double gpuNs = grown(tenant.name(), "gpu_ns", before, after);
      double launches = grown(tenant.name(), "launches", before, after);
      assertThat(gpuNs).as("%s ran", tenant.name()).isPositive();
      shares.put(tenant.name(), new Share(gpuNs, launches, gpuNs / all));
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
