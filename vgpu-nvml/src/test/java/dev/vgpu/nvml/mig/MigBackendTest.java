package dev.vgpu.nvml.mig;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuDriverException;
import dev.vgpu.nvml.CutGpu;
import dev.vgpu.nvml.EmulatedNvml;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The backend's reasons for GPUs that it cannot use, on emulated ones. */
@Timeout(60)
class MigBackendTest {
  private final NvmlProvider provider = new NvmlProvider();
  private final MigBackend backend = new MigBackend(provider);

  @Test
  void aGpuWhoseModeIsOffIsAnObstacleWithTheCommandThatSwitchesIt() {
    PhysicalGpu gpu = provider.gpus().get(0);
    assertThat(backend.obstacle(gpu).orElseThrow())
        .startsWith("MIG mode is off")
        .endsWith("vgpu mig enable " + gpu.id());
    assertThat(backend.obstacle(CutGpu.of(gpu))).isEmpty();
  }

  @Test
  void onlyADividedGpuHasPartsAndTheyAreInOrder() {
    PhysicalGpu gpu = provider.gpus().get(0);
    assertThat(backend.parts(gpu)).isEmpty();
    List<GpuPart> parts = backend.parts(CutGpu.of(gpu));
    assertThat(parts)
        .extracting(part -> part.computeSlices() + "/" + part.slices() + " " + part.start())
        .containsSubsequence(
            "1/1 0", "1/1 6", "1/2 6", "2/2 4", "3/4 0", "3/4 4", "4/4 0", "7/8 0");
    assertThat(parts).doesNotHaveDuplicates().allMatch(part -> part.multiprocessors() > 0);
  }

  @Test
  void whatNoKindOfInstanceHasIsSaid() {
    PhysicalGpu gpu = provider.gpus().get(0);
    VirtualGpuRequest.Builder request = VirtualGpuRequest.builder();
    assertThat(backend.unable(gpu, request.memory(MemorySize.ofGibibytes(1)).build())).isEmpty();
    assertThat(backend.unable(gpu, request.memory(MemorySize.ofGibibytes(3)).build()))
        .contains("no MIG profile is large enough");
  }

  @Test
  void whereNvmlTellsNoPlacesTheyAreThoseOfTheTable() throws IOException {
    GpuId gpu = provider.gpus().get(0).id();
    MigGeometry told = geometry(gpu);
    assertThat(told.profiles()).isNotEmpty();
    try (EmulatedNvml nvml = new EmulatedNvml()) {
      nvml.set("fail.nvmlDeviceGetGpuInstancePossiblePlacements_v2=13");
      assertThat(geometry(gpu)).isEqualTo(told);
      nvml.set("fail.nvmlDeviceGetGpuInstancePossiblePlacements_v2=2");
      try (MigDriver driver = MigDriver.of(provider)) {
        assertThat(driver.gpu(gpu).geometry()).isEmpty();
      }
      nvml.set("fail.nvmlDeviceGetGpuInstancePossiblePlacements_v2=999");
      assertThatThrownBy(() -> geometry(gpu)).isInstanceOf(GpuDriverException.class);
    }
  }

  private MigGeometry geometry(GpuId gpu) {
    try (MigDriver driver = MigDriver.of(provider)) {
      return driver.gpu(gpu).geometry().orElseThrow();
    }
  }
}
