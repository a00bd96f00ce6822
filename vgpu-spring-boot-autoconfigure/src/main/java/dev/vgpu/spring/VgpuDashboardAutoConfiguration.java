package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.dashboard.Dashboard;
import dev.vgpu.dashboard.DashboardOptions;
import dev.vgpu.dashboard.Token;
import dev.vgpu.dashboard.WebAddress;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.context.annotation.Bean;

/** Serves the dashboard of the pool if {@code vgpu.dashboard.enabled} is true. */
@AutoConfiguration(after = VgpuAutoConfiguration.class)
@ConditionalOnClass(Dashboard.class)
@ConditionalOnBean({GpuPool.class, VgpuProperties.class})
@ConditionalOnProperty("vgpu.dashboard.enabled")
public class VgpuDashboardAutoConfiguration {
  /** Called by Spring. */
  public VgpuDashboardAutoConfiguration() {}

  /**
   * {@return the bean that serves the dashboard}
   *
   * @param pool the pool that it shows
   * @param properties where it listens, and who may watch
   */
  @Bean
  GpuDashboard vgpuDashboard(GpuPool pool, VgpuProperties properties) {
    return new GpuDashboard(pool, options(properties.dashboard()));
  }

  private static DashboardOptions options(VgpuProperties.Dashboard properties) {
    DashboardOptions.Builder options = DashboardOptions.builder();
    try {
      options.address(WebAddress.of(properties.address(), properties.port()));
    } catch (IllegalArgumentException e) {
      throw VgpuStartException.ofDashboard(
          e,
          "Change vgpu.dashboard.address, a name or an IP address, or vgpu.dashboard.port, 0 to"
              + " 65535.");
    }
    String token = properties.token();
    try {
      if (token != null) {
        options.token(Token.of(token));
      }
      return options.build();
    } catch (IllegalArgumentException e) {
      throw VgpuStartException.ofDashboard(
          e,
          "Set vgpu.dashboard.token to a secret of at least "
              + Token.LEAST_LENGTH
              + " characters, or remove vgpu.dashboard.address to listen on the loopback"
              + " interface.");
    }
  }
}
