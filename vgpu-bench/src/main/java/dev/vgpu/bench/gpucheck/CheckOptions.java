package dev.vgpu.bench.gpucheck;

import dev.vgpu.bench.colocation.ColocationOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The options of a check. Immutable.
 *
 * @param out where the table and the JSON go
 * @param budgetSeconds for all steps together
 * @param quick the shortest form of each step, for tests of the check itself
 * @param json whether the JSON is printed instead of the table
 * @param keep whether the working directory is kept
 * @param driver for tests: the directory of another libcuda.so.1 and libnvidia-ml.so.1
 * @param part 1 or 2: the steps of that part; 0: of both
 * @param only the steps to run; all if empty
 */
record CheckOptions(
    Path out,
    double budgetSeconds,
    boolean quick,
    boolean json,
    boolean keep,
    Optional<Path> driver,
    int part,
    List<String> only) {
  /**
   * In seconds. With unpacking and copying it stays under ten minutes, a common limit of a batch
   * system's shortest queue.
   */
  private static final int BUDGET_SECONDS = 540;

  static final String USAGE =
      """
      usage: vgpu gpu-check [--out DIR] [--budget SECONDS] [--quick] [--json] [--part 1|2] [--only STEP,...] [--keep]
             vgpu gpu-check --pack [FILE]
        Checks vgpu on this machine's first NVIDIA GPU, in less than ten minutes. Changes no setting of it.
        Writes gpu-check-GPU-DRIVER.txt, .json and .emulator into DIR (default: here), anew after each step.
        VGPU_EMULATOR=@FILE.emulator makes the emulator as slow and as large as this GPU.
        --budget SECONDS  for all steps together (default 540); what does not fit is left out. A larger
                          budget lets each step take longer in proportion, for a slow machine
        --part 1|2        the steps of one part only: each part fits into 520 seconds, whatever happens
        --only STEP,...   these steps only
        --quick           the shortest form of each step
        --keep            leave the working directory, with all logs
        --pack [FILE]     make the bundle that needs neither Java nor a compiler nor the network
                          (default target/vgpu-gpu-check.tar.gz); there: ./gpu-check.sh
      Exit codes: 0 all steps ended well, 1 a step failed or there is no GPU, 2 wrong usage.
      """;

  /** Copies the list. */
  CheckOptions {
    only = List.copyOf(only);
  }

  /**
   * Parses a command line.
   *
   * @throws IllegalArgumentException if it is not valid
   */
  static CheckOptions of(List<String> arguments) {
    List<String> left = new ArrayList<>(arguments);
    String driver = ColocationOptions.value(left, "--driver", "");
    String only = ColocationOptions.value(left, "--only", "");
    String budget = ColocationOptions.value(left, "--budget", Integer.toString(BUDGET_SECONDS));
    String part = ColocationOptions.value(left, "--part", "0");
    Path out = Path.of(ColocationOptions.value(left, "--out", "."));
    boolean quick = left.remove("--quick");
    boolean json = left.remove("--json");
    boolean keep = left.remove("--keep");
    if (!left.isEmpty()) {
      throw new IllegalArgumentException("what is '" + left.get(0) + "'?");
    }
    if (!budget.matches("[1-9][0-9]{0,4}")) {
      throw new IllegalArgumentException("--budget is a number of seconds, not '" + budget + "'");
    }
    if (!part.matches("[012]")) {
      throw new IllegalArgumentException("--part is 1 or 2, not '" + part + "'");
    }
    List<String> steps = only.isEmpty() ? List.of() : List.of(only.split(",", -1));
    steps.forEach(StepName::of);
    return new CheckOptions(
        out.toAbsolutePath(),
        Double.parseDouble(budget),
        quick,
        json,
        keep,
        driver.isEmpty() ? Optional.empty() : Optional.of(Path.of(driver).toAbsolutePath()),
        Integer.parseInt(part),
        steps);
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
