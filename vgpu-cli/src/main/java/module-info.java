/** The {@code vgpu} command; a program, not a library: it exports nothing. */
@SuppressWarnings("requires-automatic") // HdrHistogram and Micrometer have no module descriptors.
module dev.vgpu.cli {
  requires static org.jspecify;
  requires com.fasterxml.jackson.databind;
  requires dev.vgpu;
  requires dev.vgpu.core;
  requires dev.vgpu.fleet;
  requires dev.vgpu.micrometer;
  requires dev.vgpu.nvml;
  requires info.picocli;
  requires java.net.http;
  requires jdk.httpserver;
  requires jdk.management;
  requires micrometer.registry.prometheus;
  requires jdk.unsupported;
  requires org.slf4j;
  requires org.snakeyaml.engine;
  requires HdrHistogram;

  uses dev.vgpu.spi.GpuDriver;

  opens dev.vgpu.cli to
      info.picocli;
}
