/**
 * The pool, the share scheduler and turns for calls in this JVM. Exports only admission and the
 * scheduler, and only to the simulation.
 */
@SuppressWarnings("module") // the simulation does not exist yet when this module is compiled
module dev.vgpu.core {
  requires dev.vgpu;
  requires com.google.common;
  requires jdk.jfr;
  requires jdk.management;
  requires jdk.net;
  requires org.slf4j;
  requires static org.jspecify;

  exports dev.vgpu.core.admission to
      dev.vgpu.simulation;
  exports dev.vgpu.core.schedule to
      dev.vgpu.simulation;

  uses dev.vgpu.spi.EnforcementBackend;
  uses dev.vgpu.spi.GpuProvider;
  uses dev.vgpu.spi.ProcessSuspender;

  provides dev.vgpu.GpuPool.Provider with
      dev.vgpu.core.pool.NodePoolProvider;
}
