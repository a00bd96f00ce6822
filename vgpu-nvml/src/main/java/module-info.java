/** Finds GPUs through NVML. Exports nothing to libraries. */
@SuppressWarnings("module") // the command is built after this module
module dev.vgpu.nvml {
  requires dev.vgpu;
  requires com.sun.jna;
  requires org.slf4j;
  requires static org.jspecify;

  uses dev.vgpu.spi.GpuDriver;

  // For the command that partitions GPUs; not part of the public API.
  exports dev.vgpu.nvml.mig to
      dev.vgpu.cli;
  exports dev.vgpu.nvml.mig.plan to
      dev.vgpu.cli;

  provides dev.vgpu.spi.EnforcementBackend with
      dev.vgpu.nvml.mig.MigBackend,
      dev.vgpu.nvml.mps.MpsBackend;
  provides dev.vgpu.spi.GpuProvider with
      dev.vgpu.nvml.NvmlProvider;
}
