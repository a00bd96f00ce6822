package dev.vgpu.bench.command;

import dev.vgpu.cli.command.JsonOption;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
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

  @Option(names = "--minutes", paramLabel = "N", description = "How long. Default: 5.")
  private double minutes = 5;

  @Option(
      names = "--seed",
      paramLabel = "S",
      description = "What the steps are drawn from. Default: a new one each time.")
  private @Nullable Long seed;

  @Option(
      names = "--steps",
      paramLabel = "N",
      description = "How many steps at most. Default: as many as there is time for.")
  private @Nullable Integer steps;

  @Option(
      names = "--runs",
      paramLabel = "N",
      description =
          "How many runs one after the other, each with a seed of its own and a line of output."
              + " Default: 1.")
  private int runs = 1;

  @Mixin private final JsonOption json = new JsonOption();

  @Override
  public Integer call() throws IOException, InterruptedException {
    if (!(minutes > 0)) {
      throw new ParameterException(spec.commandLine(), "--minutes must be more than 0");
    }
    if (steps != null && steps < 1) {
      throw new ParameterException(spec.commandLine(), "--steps must be at least 1");
    }
    if (runs < 1) {
      throw new ParameterException(spec.commandLine(), "--runs must be at least 1");
    }
    return BenchProcess.runApart("chaos", options());
  }

  private List<String> options() {
    List<String> options = new ArrayList<>(List.of("--minutes", Double.toString(minutes)));
    if (seed != null) {
      options.addAll(List.of("--seed", Long.toString(seed)));
    }
    if (steps != null) {
      options.addAll(List.of("--steps", Integer.toString(steps)));
    }
    if (runs > 1) {
      options.addAll(List.of("--runs", Integer.toString(runs)));
    }
    if (json.isGiven()) {
      options.add("--json");
    }
    return options;
  }
}
