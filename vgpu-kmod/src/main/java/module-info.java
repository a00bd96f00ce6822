/** The backend of the kernel module. Exports nothing to libraries. */
module dev.vgpu.kmod {
  requires dev.vgpu;
  requires static org.jspecify;

  provides dev.vgpu.spi.EnforcementBackend with
      dev.vgpu.kmod.KmodBackend;
}
