/**
 * What an integrator compiles against: the vgpu API and the interfaces that a backend implements.
 */
@SuppressWarnings("module") // Modules of ours that are not there yet when this one is compiled.
module dev.vgpu {
  requires static org.jspecify;

  exports dev.vgpu;
  exports dev.vgpu.spi;
  // Which files are trusted; no part of the API.
  exports dev.vgpu.files to
      dev.vgpu.cli,
      dev.vgpu.core,
      dev.vgpu.cuda,
      dev.vgpu.emulator,
      dev.vgpu.nvml;

  uses dev.vgpu.spi.GpuPoolProvider;
}
