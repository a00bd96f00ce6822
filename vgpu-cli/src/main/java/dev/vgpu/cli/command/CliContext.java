package dev.vgpu.cli.command;

import static java.util.Objects.requireNonNull;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.time.NanoClock;
import java.util.Map;
import java.util.function.Supplier;

/**
 * The streams, environment, GPUs and clock that a command uses. Immutable.
 *
 * @param console standard output and standard error
 * @param environment the environment variables
 * @param pools opens the GPUs of this machine
 * @param clock the clock
 */
public record CliContext(
    Console console, Map<String, String> environment, Pools pools, NanoClock clock) {
  /** Opens the GPUs of this machine. */
  public interface Pools extends Supplier<GpuPool> {
    /** {@return the GPUs, shared according to the options} */
    GpuPool open(GpuPoolOptions options);

    /** {@return the GPUs, shared according to the settings of the process that holds the seat} */
    @Override
    default GpuPool get() {
      return open(GpuPoolOptions.defaults());
    }
  }

  /** Keeps a copy of the environment. */
  public CliContext {
    requireNonNull(console, "console");
    environment = Map.copyOf(environment);
    requireNonNull(pools, "pools");
    requireNonNull(clock, "clock");
  }

  /** {@return the context of this process} */
  public static CliContext ofProcess() {
    Map<String, String> environment = System.getenv();
    return new CliContext(
        Console.ofProcess(environment), environment, GpuPool::open, NanoClock.system());
  }
}
