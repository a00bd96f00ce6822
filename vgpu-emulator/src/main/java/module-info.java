/** An emulated CUDA driver and NVML, as native resources. Exports nothing. */
module dev.vgpu.emulator {
  requires dev.vgpu;
  requires static org.jspecify;

  provides dev.vgpu.spi.GpuDriver with
      dev.vgpu.emulator.EmulatorDriver;
}
