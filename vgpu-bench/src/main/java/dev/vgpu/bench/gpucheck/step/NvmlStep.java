package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.NvidiaSmi;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.gpucheck.machine.SmiComparison;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;

/** Compares vgpu's NVML readings with {@code nvidia-smi}'s output while a program holds memory. */
public final class NvmlStep implements Step {
  private static final int TRIES = 3;
  private static final long HELD_BYTES = 256L << 20;

  /** Excludes MIG instances: nvidia-smi's list of GPUs has no rows for them. */
  private static boolean isWhole(PhysicalGpu gpu) {
    return gpu.id().value().startsWith("GPU-");
  }

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    Optional<NvidiaSmi> smi = NvidiaSmi.find(place.work());
    if (smi.isEmpty()) {
      findings.skip("there is no nvidia-smi in PATH");
      return;
    }
    try (Node node = Node.open(Map.of())) {
      Child holder =
          node.start("hoard", new ProcessBuilder(place.hoard(HELD_BYTES, "--hold", "60")), here());
      String ignored = holder.line();
      compare(findings, smi.get(), holder.pid());
    }
  }

  /** The environment with which a program uses the same GPUs, if they are emulated. */
  static Map<String, String> here() {
    String emulated = System.getenv("VGPU_EMULATOR_DIR");
    return emulated == null ? Map.of() : Map.of("VGPU_EMULATOR_DIR", emulated);
  }

  private static void compare(Findings findings, NvidiaSmi smi, long holder)
      throws InterruptedException {
    NvmlProvider provider = new NvmlProvider();
    List<PhysicalGpu> gpus = provider.gpus().stream().filter(NvmlStep::isWhole).toList();
    Map<PhysicalGpu, List<SmiComparison.Value>> compared = Map.of();
    Set<String> missing = new TreeSet<>();
    int tries = 0;
    boolean isSame = false;
    // Other processes may start and end meanwhile; a chance difference does not occur again.
    while (!isSame && tries++ < TRIES) {
      missing.clear();
      compared = once(provider, gpus, smi, missing);
      isSame =
          missing.isEmpty()
              && compared.values().stream()
                  .flatMap(List::stream)
                  .allMatch(SmiComparison.Value::isSame);
    }
    findings.at("nvml").put("tries", Math.min(tries, TRIES)).put("program_pid", holder);
    for (String gpu : missing) {
      findings.failure("%s: only one of NVML and nvidia-smi knows it", gpu);
    }
    compared.forEach((gpu, values) -> tell(findings, gpu.id(), values));
    long all = compared.values().stream().mapToLong(List::size).sum();
    long same =
        compared.values().stream()
            .flatMap(List::stream)
            .filter(SmiComparison.Value::isSame)
            .count();
    findings.summary(
        "%d of %d values of %d GPUs are what nvidia-smi says", same, all, compared.size());
  }

  private static Map<PhysicalGpu, List<SmiComparison.Value>> once(
      NvmlProvider provider, List<PhysicalGpu> gpus, NvidiaSmi smi, Set<String> missing)
      throws InterruptedException {
    Map<GpuId, GpuReading> before = readings(provider);
    Map<String, Map<String, String>> rows = smi.gpus();
    Map<String, Map<Long, String>> processes = smi.processes();
    Map<GpuId, GpuReading> after = readings(provider);
    Map<PhysicalGpu, List<SmiComparison.Value>> compared = new LinkedHashMap<>();
    missing.addAll(rows.keySet());
    for (PhysicalGpu gpu : gpus) {
      String id = gpu.id().value();
      Map<String, String> row = rows.get(id);
      GpuReading first = before.get(gpu.id());
      GpuReading second = after.get(gpu.id());
      if (row == null || first == null || second == null) {
        missing.add(id);
        continue;
      }
      missing.remove(id);
      // The processes of a GPU that is divided are listed with its instances.
      boolean isCut = gpu.unusableAsWhole().isPresent();
      Map<Long, String> told = isCut ? null : processes.getOrDefault(id, Map.of());
      compared.put(gpu, new SmiComparison(gpu, first, second, row, told).values());
    }
    return compared;
  }

  private static Map<GpuId, GpuReading> readings(NvmlProvider provider) {
    Map<GpuId, GpuReading> readings = new HashMap<>();
    provider.readings().forEach(reading -> readings.put(reading.gpu(), reading));
    return readings;
  }

  private static void tell(Findings findings, GpuId gpu, List<SmiComparison.Value> values) {
    ObjectNode into = findings.at("nvml", gpu.value());
    findings.line("%s", gpu);
    findings.line("  %-32s%-28s%s", "", "NVML", "nvidia-smi");
    List<String> differences = new ArrayList<>();
    for (SmiComparison.Value value : values) {
      into.putObject(value.field()).put("nvml", value.nvml()).put("nvidia_smi", value.smi());
      findings.line("  %-32s%-28s%s", value.field(), value.nvml(), value.smi());
      if (!value.isSame()) {
        differences.add(value.difference());
      }
    }
    differences.forEach(each -> findings.failure("%s: %s", gpu, each));
  }
}
