/**
 * The share scheduler and admission in virtual time. Exports its packages only to the command-line
 * module.
 */
@SuppressWarnings("module") // the command's module does not exist yet when this one is compiled
module dev.vgpu.simulation {
  requires transitive dev.vgpu;
  requires dev.vgpu.core;
  requires static org.jspecify;

  exports dev.vgpu.simulation to
      dev.vgpu.cli;
  exports dev.vgpu.simulation.trace to
      dev.vgpu.cli;
}
