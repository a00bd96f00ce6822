package dev.vgpu.bench.gpucheck.machine;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** Output of nvidia-smi in the forms that real machines print, compared with NVML readings. */
class NvidiaSmiTest {
  private static final List<String> FIELDS = List.of("name", "memory.total", "mig.mode.current");

  private record Gpu(GpuId id, String model, MemorySize memory) implements PhysicalGpu {
    @Override
    public MemorySize usableMemory() {
      return memory;
    }

    @Override
    public String provider() {
      return "nvml";
    }
  }

  private record Reading(long usedMib, List<GpuProcess> processes, Map<String, String> properties)
      implements GpuReading {
    @Override
    public GpuId gpu() {
      return new GpuId("GPU-1");
    }

    @Override
    public GpuHealth health() {
      return GpuHealth.HEALTHY;
    }

    @Override
    public String healthReason() {
      return "";
    }

    @Override
    public Optional<MemorySize> memoryTotal() {
      return Optional.of(MemorySize.ofMebibytes(81_559));
    }

    @Override
    public Optional<MemorySize> memoryUsed() {
      return Optional.of(MemorySize.ofMebibytes(usedMib));
    }
  }

  private static Reading reading(long usedMib, long... pids) {
    List<GpuReading.GpuProcess> processes =
        Arrays.stream(pids)
            .mapToObj(
                pid ->
                    new GpuReading.GpuProcess(
                        pid, Optional.of(MemorySize.ofMebibytes(300)), OptionalInt.empty()))
            .toList();
    return new Reading(usedMib, processes, Map.of("compute_mode", "exclusive process"));
  }

  private static List<String> differences(
      Reading before, Reading after, Map<String, String> smi, Map<Long, String> processes) {
    Gpu gpu = new Gpu(new GpuId("GPU-1"), "NVIDIA H100", MemorySize.ofMebibytes(81_559));
    return new SmiComparison(gpu, before, after, smi, processes)
        .values().stream()
            .filter(value -> !value.isSame())
            .map(SmiComparison.Value::difference)
            .toList();
  }

  @Test
  void whatItDoesNotTellIsLeftOutAndMessagesAreNoRows() {
    Map<String, Map<String, String>> rows = new HashMap<>();
    NvidiaSmi.addRows(
        """
        GPU-1, NVIDIA H100 80GB HBM3, 81559, Disabled
        GPU-2, Tesla V100, [Insufficient Permissions], [N/A]
        Unable to determine the device handle for GPU 0000:03:00.0
        """,
        FIELDS,
        rows);
    assertThat(rows)
        .containsOnly(
            Map.entry(
                "GPU-1",
                Map.of(
                    "name", "NVIDIA H100 80GB HBM3",
                    "memory.total", "81559",
                    "mig.mode.current", "Disabled")),
            Map.entry("GPU-2", Map.of("name", "Tesla V100")));
  }

  @Test
  void whatMovedMeanwhileIsNoDifference() {
    assertThat(
            differences(
                reading(900, 1, 2),
                reading(500, 2, 3),
                Map.of("memory.used", "707", "compute_mode", "Exclusive_Process"),
                Map.of(2L, "300", 3L, "[N/A]")))
        .isEmpty();
  }

  @Test
  void aDifferenceNamesBoth() {
    assertThat(
            differences(
                reading(500, 1),
                reading(510, 1),
                Map.of(
                    "name", "Other",
                    "memory.total", "81561",
                    "memory.used", "600",
                    "memory.reserved", "551",
                    "compute_mode", "Default"),
                Map.of(7L, "1")))
        .containsExactly(
            "name: NVML says NVIDIA H100, nvidia-smi says Other",
            "memory.total: NVML says 81559.0 MiB, nvidia-smi says 81561 MiB",
            "memory.reserved: NVML says nothing, nvidia-smi says 551 MiB",
            "memory.used: NVML says 500.0 MiB to 510.0 MiB, nvidia-smi says 600 MiB",
            "compute_mode: NVML says exclusive process, nvidia-smi says Default",
            "processes: NVML says 1, nvidia-smi says 7");
  }

  @Test
  void aProcessThatMpsMayServe() {
    GpuId gpu = new GpuId("GPU-abcd-1");
    assertThat(new MpsProcess(1, "", "").mayServe(gpu)).isTrue();
    assertThat(new MpsProcess(1, "", "0").mayServe(gpu)).isTrue();
    assertThat(new MpsProcess(1, "", "GPU-ABCD").mayServe(gpu)).isTrue();
    assertThat(new MpsProcess(1, "", "GPU-ef,GPU-abcd-1").mayServe(gpu)).isTrue();
    assertThat(new MpsProcess(1, "", "GPU-ef").mayServe(gpu)).isFalse();
  }
}
