package dev.vgpu.bench.gpucheck;

import dev.vgpu.cli.command.JsonOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** The options of {@code vgpu gpu-check}, and of the process that it starts. Picocli sets them. */
public final class CheckOptions {
  /**
   * In seconds. With unpacking and copying it stays under ten minutes, a common limit of a batch
   * system's shortest queue.
   */
  private static final int BUDGET_SECONDS = 540;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the options.
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--out",
      paramLabel = "dir",
      description = "Where the results go (default: here).")
  private Path out = Path.of(".");

  double budgetSeconds = BUDGET_SECONDS;
  private List<String> only = List.of();

  /** 1 or 2: the steps of that part run; 0: of both. */
  int part;

  /** For tests: the directory of another libcuda.so.1 and libnvidia-ml.so.1. */
  @Option(names = "--driver", paramLabel = "dir", hidden = true)
  private @Nullable Path driver;

  @Option(names = "--quick", description = "The shortest form of each step.")
  boolean quick;

  @Option(names = "--keep", description = "Leave the working directory, with all logs.")
  boolean keep;

  @Option(
      names = "--pack",
      description =
          "Make the bundle for a machine without Java, compiler and network"
              + " (target/vgpu-gpu-check.tar.gz, or the file named behind it).")
  boolean pack;

  @Parameters(arity = "0..1", hidden = true)
  @Nullable Path packFile;

  @Mixin final JsonOption json = new JsonOption();

  @Option(
      names = "--budget",
      paramLabel = "seconds",
      description = "For all steps together (default 540); what does not fit is left out.")
  void setBudget(String budget) {
    check(
        budget.matches("[1-9][0-9]{0,4}"), "--budget is a number of seconds, not '" + budget + "'");
    budgetSeconds = Integer.parseInt(budget);
  }

  @Option(
      names = "--only",
      paramLabel = "steps",
      description =
          "These steps only, with commas: machine, programs, torch, clients, driver, charged,"
              + " quota, leave, level2, costs, shares, colocation, nvml, mig, mps, suspend,"
              + " rm, fidelity.")
  void setOnly(String steps) {
    only = List.of(steps.split(",", -1));
    try {
      only.forEach(StepName::of);
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  @Option(
      names = "--part",
      paramLabel = "1|2",
      description = "The steps of one part only: each part fits into 520 seconds.")
  void setPart(String part) {
    check(part.matches("[012]"), "--part is 1 or 2, not '" + part + "'");
    this.part = Integer.parseInt(part);
  }

  private void check(boolean valid, String message) {
    if (!valid) {
      throw new ParameterException(spec.commandLine(), message);
    }
  }

  /** Where the table and the JSON go. */
  Path out() {
    return out.toAbsolutePath();
  }

  Optional<Path> driver() {
    return Optional.ofNullable(driver).map(Path::toAbsolutePath);
  }

  /** {@return how long a step may take, in seconds, before what is left of the budget bounds it} */
  double limitSeconds(StepName step) {
    return step.limitSeconds() * Math.max(1, budgetSeconds / BUDGET_SECONDS);
  }

  /** Whether a step is to be run. */
  boolean isWanted(StepName step) {
    return only.isEmpty() ? part == 0 || part == step.part() : only.contains(step.word());
  }
}
