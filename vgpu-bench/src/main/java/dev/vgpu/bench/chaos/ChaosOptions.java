package dev.vgpu.bench.chaos;

import dev.vgpu.cli.command.JsonOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The options of {@code vgpu chaos}, and of the process that it starts. Picocli sets them. */
public final class ChaosOptions {
  private static final long LARGEST_RANDOM_SEED = 1_000_000;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the options.
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  private double minutes = 5;
  int steps = Integer.MAX_VALUE;
  int runs = 1;

  @Option(
      names = "--seed",
      paramLabel = "S",
      description = "What the steps are drawn from. Default: a new one each time.")
  private long seed = randomSeed(new Random());

  /** A run of fewer steps shows too little, unless {@code --steps} is less. */
  @Option(names = "--least-steps", hidden = true)
  int leastSteps = 10;

  @Mixin final JsonOption json = new JsonOption();

  @Option(names = "--minutes", paramLabel = "N", description = "How long. Default: 5.")
  void setMinutes(double minutes) {
    check(minutes > 0, "--minutes must be more than 0");
    this.minutes = minutes;
  }

  @Option(
      names = "--steps",
      paramLabel = "N",
      description = "How many steps at most. Default: as many as there is time for.")
  void setSteps(int steps) {
    check(steps >= 1, "--steps must be at least 1");
    this.steps = steps;
  }

  @Option(
      names = "--runs",
      paramLabel = "N",
      description =
          "How many runs one after the other, each with a seed of its own and a line of output."
              + " Default: 1.")
  void setRuns(int runs) {
    check(runs >= 1, "--runs must be at least 1");
    this.runs = runs;
  }

  private void check(boolean valid, String message) {
    if (!valid) {
      throw new ParameterException(spec.commandLine(), message);
    }
  }

  /** {@return a seed with few digits, which is easy to give again} */
  public static long randomSeed(Random random) {
    return 1 + random.nextLong(LARGEST_RANDOM_SEED);
  }

  /** {@return the seed of each run: the first is the option, the others are drawn from it} */
  List<Long> seeds() {
    List<Long> seeds = new ArrayList<>(List.of(seed));
    Random random = new Random(seed);
    while (seeds.size() < runs) {
      seeds.add(randomSeed(random));
    }
    return seeds;
  }

  double seconds() {
    return minutes * 60;
  }

  /** {@return whether a run that held has made too few steps to show anything} */
  boolean isTooShort(int made) {
    return made < Math.min(leastSteps, steps);
  }
}
