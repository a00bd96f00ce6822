package dev.vgpu.bench.command;

import dev.vgpu.bench.chaos.ChaosOptions;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Runs the chaos suite as a process. */
@Command(
    name = "chaos",
    description = {
      "Stress programs under virtual GPUs with random failures, and check that every promise"
          + " holds.",
      "",
      "Random programs allocate, launch and fork over emulated GPUs; they are killed at any"
          + " instant, stopped and let go on, the seat is killed and taken over, its disk fills up,"
          + " the clock is stepped. After each step: no byte over a quota, the ledgers tell what"
          + " the GPU tells, nobody hangs or waits too long, shares come back."
    },
    footer = {
      "",
      "The steps are drawn from the seed. A run that fails says its seed and step, how to repeat"
          + " it, and where its logs are. Full disks need a mount namespace (root, or user"
          + " namespaces); the machine's mounts and clock are left alone.",
      "Exit codes: 0 all held, 1 something did not, 2 wrong usage, 130 ended by Ctrl-C."
    })
public final class ChaosCommand implements Callable<Integer> {
  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Mixin final ChaosOptions options = new ChaosOptions();

  @Override
  public Integer call() throws IOException, InterruptedException {
    return BenchProcess.runApart("chaos", spec);
  }
}
