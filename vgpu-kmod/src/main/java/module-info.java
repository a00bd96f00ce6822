/** The kernel module's backend. Exports nothing. */
module dev.vgpu.kmod {
  requires dev.vgpu;
  requires com.sun.jna;
  requires static org.jspecify;

  provides dev.vgpu.spi.EnforcementBackend with
      dev.vgpu.kmod.KmodBackend;
}
