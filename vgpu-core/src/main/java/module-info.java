/** The pool, the share scheduler and turns for calls in this JVM. Exports nothing. */
module dev.vgpu.core {
  requires dev.vgpu;
  requires com.google.common;
  requires jdk.management;
  requires org.slf4j;
  requires static org.jspecify;

  uses dev.vgpu.spi.EnforcementBackend;
  uses dev.vgpu.spi.GpuProvider;
  uses dev.vgpu.spi.ProcessSuspender;

  provides dev.vgpu.spi.GpuPoolProvider with
      dev.vgpu.core.pool.NodePoolProvider;
}
