package dev.vgpu.nvml;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VirtualGpuRequest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What the backend says of GPUs that it cannot use, over emulated ones. */
@Timeout(60)
class MigBackendTest {
  private final NvmlProvider provider = new NvmlProvider();
  private final MigBackend backend = new MigBackend(provider);

  @Test
  void aGpuWhoseModeIsOffIsAnObstacleWithTheCommandThatSwitchesIt() {
    PhysicalGpu gpu = provider.gpus().get(0);
    assertThat(backend.obstacle(gpu).orElseThrow())
        .startsWith("its MIG mode is off")
        .endsWith("vgpu mig enable " + gpu.id());
    assertThat(backend.obstacle(CutGpu.of(gpu))).isEmpty();
  }

  @Test
  void whatNoKindOfInstanceHasIsSaid() {
    PhysicalGpu gpu = provider.gpus().get(0);
    VirtualGpuRequest.Builder request = VirtualGpuRequest.builder();
    assertThat(backend.unable(gpu, request.memory(MemorySize.ofGibibytes(1)).build())).isEmpty();
    assertThat(backend.unable(gpu, request.memory(MemorySize.ofGibibytes(3)).build()))
        .contains("no kind of MIG instance has so much");
  }
}
