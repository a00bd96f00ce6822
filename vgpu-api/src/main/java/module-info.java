/**
 * What an integrator compiles against: the vgpu API and the interfaces that a backend implements.
 */
module dev.vgpu {
  requires static org.jspecify;

  exports dev.vgpu;
  exports dev.vgpu.spi;

  uses dev.vgpu.spi.GpuPoolProvider;
}
