/** A cluster of GPUs and its placement decisions. Exports nothing but to the command. */
@SuppressWarnings("module") // The command's module is not there yet when this one is compiled.
module dev.vgpu.fleet {
  requires transitive dev.vgpu;
  requires static org.jspecify;

  exports dev.vgpu.fleet.model to
      dev.vgpu.cli,
      dev.vgpu.k8s;
  exports dev.vgpu.fleet.placement to
      dev.vgpu.cli,
      dev.vgpu.k8s;
  exports dev.vgpu.fleet.gang to
      dev.vgpu.cli,
      dev.vgpu.k8s;
  exports dev.vgpu.fleet.simulation to
      dev.vgpu.cli,
      dev.vgpu.k8s;
}
