/** GPUs found through NVML. Exports nothing. */
module dev.vgpu.nvml {
  requires dev.vgpu;
  requires com.sun.jna;
  requires org.slf4j;
  requires static org.jspecify;

  uses dev.vgpu.spi.GpuDriver;

  provides dev.vgpu.spi.EnforcementBackend with
      dev.vgpu.nvml.mps.MpsBackend;
  provides dev.vgpu.spi.GpuProvider with
      dev.vgpu.nvml.NvmlProvider;
}
