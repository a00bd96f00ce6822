package dev.vgpu.cli;

import static java.util.Objects.requireNonNull;

import dev.vgpu.GpuPool;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.time.NanoClock;
import java.util.Map;
import java.util.function.Supplier;

/**
 * What a command gets from outside. Immutable.
 *
 * @param console standard output and standard error
 * @param environment the environment's variables
 * @param pools opens the GPUs of this machine
 * @param clock the time
 */
record CliContext(
    Console console, Map<String, String> environment, Supplier<GpuPool> pools, NanoClock clock) {
  CliContext {
    requireNonNull(console, "console");
    environment = Map.copyOf(environment);
    requireNonNull(pools, "pools");
    requireNonNull(clock, "clock");
  }

  /** {@return this process's} */
  static CliContext ofProcess() {
    Map<String, String> environment = System.getenv();
    return new CliContext(
        Console.ofProcess(environment), environment, GpuPool::open, NanoClock.system());
  }
}
