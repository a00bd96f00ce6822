/**
 * The pool, the share scheduler and turns for calls in this JVM. Exports only admission and the
 * simulation, and only to the command-line module.
 */
@SuppressWarnings("module") // the command's module does not exist yet when this one is compiled
module dev.vgpu.core {
  requires dev.vgpu;
  requires com.google.common;
  requires jdk.jfr;
  requires jdk.management;
  requires jdk.net;
  requires org.slf4j;
  requires static org.jspecify;

  exports dev.vgpu.core.admission to
      dev.vgpu.cli;
  exports dev.vgpu.core.simulate to
      dev.vgpu.cli;

  uses dev.vgpu.spi.EnforcementBackend;
  uses dev.vgpu.spi.GpuProvider;
  uses dev.vgpu.spi.ProcessSuspender;

  provides dev.vgpu.GpuPool.Provider with
      dev.vgpu.core.pool.NodePoolProvider;
}
