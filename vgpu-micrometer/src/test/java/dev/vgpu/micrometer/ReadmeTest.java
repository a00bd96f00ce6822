package dev.vgpu.micrometer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import org.junit.jupiter.api.Test;

/** The module's README includes this code. */
class ReadmeTest {
  @Test
  void theMetersOfAPoolAndTheWaitsOfAModel() throws Exception {
    String scrape;
    try (GpuPool pool = TestGpu.pool(TestGpu.next())) {
      VirtualGpuRequest request =
          VirtualGpuRequest.builder().name("embed").memory(MemorySize.ofMebibytes(64)).build();
      // #region meters
      PrometheusMeterRegistry registry = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
      try (VgpuMetrics metrics = new VgpuMetrics(pool);
          VirtualGpu gpu = VgpuMetrics.timed(pool.acquire(request), registry)) {
        metrics.bindTo(registry);
        gpu.run(() -> {}); // its wait is timed
        scrape = registry.scrape();
      }
      // #endregion meters
    }

    assertThat(scrape)
        .contains("vgpu_memory_quota_bytes{", "vgpu_wait_seconds_count{", "name=\"embed\"");
  }
}
