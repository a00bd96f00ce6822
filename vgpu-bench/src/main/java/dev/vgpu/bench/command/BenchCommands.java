package dev.vgpu.bench.command;

import dev.vgpu.bench.demo.DemoCommand;
import dev.vgpu.cli.command.CheckoutCommands;
import dev.vgpu.cli.command.CliContext;

/** The commands of {@code vgpu} that this module adds. */
public final class BenchCommands implements CheckoutCommands {
  /** Called by {@link java.util.ServiceLoader}. */
  public BenchCommands() {}

  @Override
  public Object command(String name, CliContext context) {
    return switch (name) {
      case "demo" -> new DemoCommand(context);
      case "bench" -> new BenchCommand();
      case "chaos" -> new ChaosCommand();
      case "soak" -> new SoakCommand();
      case "gpu-check" -> new GpuCheckCommand();
      default -> throw new IllegalArgumentException("no such command: " + name);
    };
  }
}
