/** The {@code vgpu} command; a program, not a library: it exports nothing. */
@SuppressWarnings("requires-automatic") // Micrometer has no module descriptor.
module dev.vgpu.cli {
  requires static org.jspecify;
  requires com.fasterxml.jackson.databind;
  requires dev.vgpu;
  requires dev.vgpu.dashboard;
  requires dev.vgpu.fleet;
  requires dev.vgpu.micrometer;
  requires dev.vgpu.nvml;
  requires dev.vgpu.simulation;
  requires info.picocli;
  requires jdk.httpserver;
  requires jdk.management;
  requires micrometer.registry.prometheus;
  requires jdk.unsupported;
  requires org.slf4j;
  requires org.snakeyaml.engine;

  uses dev.vgpu.cli.command.CheckoutCommands;
  uses dev.vgpu.spi.GpuDriver;

  // Commands and mixins, whose fields picocli sets.
  opens dev.vgpu.cli to
      info.picocli;
  opens dev.vgpu.cli.command to
      info.picocli;
  opens dev.vgpu.cli.container to
      info.picocli;
  opens dev.vgpu.cli.doctor to
      info.picocli;
  opens dev.vgpu.cli.fleet to
      info.picocli;
  opens dev.vgpu.cli.help to
      info.picocli;
  opens dev.vgpu.cli.mig to
      info.picocli;
  opens dev.vgpu.cli.run to
      info.picocli;
  opens dev.vgpu.cli.serve to
      info.picocli;
  opens dev.vgpu.cli.simulation to
      info.picocli;
  opens dev.vgpu.cli.watch to
      info.picocli;
}
