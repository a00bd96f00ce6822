/** The Java side of the CUDA hook, and the CUDA backends. Exports nothing. */
module dev.vgpu.cuda {
  requires dev.vgpu;
  requires com.sun.jna;
  requires jdk.net;
  requires org.slf4j;
  requires static org.jspecify;

  uses dev.vgpu.spi.GpuDriver;

  provides dev.vgpu.spi.EnforcementBackend with
      dev.vgpu.cuda.CudaHookBackend,
      dev.vgpu.cuda.GreenBackend;
  provides dev.vgpu.spi.ProcessSuspender with
      dev.vgpu.cuda.suspend.CheckpointSuspender;
}
