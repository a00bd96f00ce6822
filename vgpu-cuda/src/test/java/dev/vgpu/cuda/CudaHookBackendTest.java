package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

class CudaHookBackendTest {
  private static final long CONTEXT = 65_536;

  private static Optional<String> unable(long quota) {
    return new CudaHookBackend(Map.of("VGPU_CONTEXT_MEMORY", Long.toString(CONTEXT)))
        .unable(
            TestGpu.named("GPU-1"),
            VirtualGpuRequest.builder().memory(MemorySize.ofBytes(quota)).build());
  }

  /** Before a program is started: the request is refused, and explain says why. */
  @Test
  void quotaBelowOneContextIsNotServed() {
    assertThat(unable(CONTEXT)).isEmpty();
    assertThat(unable(CONTEXT - 1))
        .hasValueSatisfying(
            why ->
                assertThat(why)
                    .contains("smaller than a CUDA context")
                    .contains("context=64KiB")
                    .contains("gpu=GPU-1"));
  }
}
