package dev.vgpu.spring;

import dev.vgpu.GpuPool;
import dev.vgpu.dashboard.Dashboard;
import dev.vgpu.dashboard.DashboardOptions;
import dev.vgpu.dashboard.WebAddress;
import java.io.IOException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.context.SmartLifecycle;

/**
 * Serves the dashboard while the service runs. It stops after the virtual GPUs were released, so
 * that it shows what the service still waits for, and before the pool is closed.
 */
final class GpuDashboard implements SmartLifecycle {
  /** Below that of the virtual GPUs. */
  static final int PHASE = GpuShutdown.PHASE - 1024;

  private static final Logger log = LoggerFactory.getLogger(GpuDashboard.class);

  private final GpuPool pool;
  private final DashboardOptions options;
  private volatile @Nullable Dashboard dashboard;

  GpuDashboard(GpuPool pool, DashboardOptions options) {
    this.pool = pool;
    this.options = options;
  }

  @Override
  public void start() {
    try {
      Dashboard opened = Dashboard.open(pool, options);
      dashboard = opened;
      log.info("vgpu: dashboard at http://{}/", opened.address().inUrl());
    } catch (IOException e) {
      throw VgpuStartException.ofListening(options.address().inUrl(), e);
    }
  }

  @Override
  public void stop() {
    Dashboard open = dashboard;
    dashboard = null;
    if (open != null) {
      open.close();
    }
  }

  @Override
  public boolean isRunning() {
    return dashboard != null;
  }

  @Override
  public int getPhase() {
    return PHASE;
  }

  /** {@return where it listens, with the actual port; null while it does not} */
  @Nullable WebAddress address() {
    Dashboard open = dashboard;
    return open == null ? null : open.address();
  }
}
