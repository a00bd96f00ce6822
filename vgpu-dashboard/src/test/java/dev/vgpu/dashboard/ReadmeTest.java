package dev.vgpu.dashboard;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuPool;
import java.io.IOException;
import org.junit.jupiter.api.Test;

/** The code in README.md. */
class ReadmeTest {
  @Test
  void aDashboardInAJvm() throws IOException {
    WebAddress address = WebAddress.fromString("0");
    try (GpuPool pool = SimulatedGpu.pool(1)) {
      // #region serve
      DashboardOptions options = DashboardOptions.builder().address(address).build();
      try (Dashboard dashboard = Dashboard.open(pool, options)) {
        System.out.println("http://" + dashboard.address().inUrl() + "/");
        // ... until the program ends
      }
      // #endregion serve
      assertThat(options.address()).isEqualTo(address);
    }
  }
}
