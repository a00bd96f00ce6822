/** The vgpu API for integrators, and the interfaces that a backend implements. */
@SuppressWarnings("module") // Some modules named here are not built yet when this one is compiled.
module dev.vgpu {
  requires static org.jspecify;

  exports dev.vgpu;
  exports dev.vgpu.backend;
  exports dev.vgpu.request;
  exports dev.vgpu.spi;
  exports dev.vgpu.watch;
  // Container runtimes' files; not part of the API.
  exports dev.vgpu.cdi to
      dev.vgpu.cli;
  // The rules for trusted files, and the kernel's files; not part of the API.
  exports dev.vgpu.files to
      dev.vgpu.cli,
      dev.vgpu.core,
      dev.vgpu.cuda,
      dev.vgpu.emulator,
      dev.vgpu.kmod,
      dev.vgpu.nvml;
  // Learns the memory of models; not part of the API. The jars' names are those of their modules.
  exports dev.vgpu.memory to
      vgpu.djl,
      vgpu.onnxruntime;

  uses dev.vgpu.GpuPool.Provider;
}
