/**
 * A cluster of GPUs and its placement decisions. Exports its packages only to the command-line
 * module and the Kubernetes adapter.
 */
@SuppressWarnings("module") // the modules named in exports are compiled after this one
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
