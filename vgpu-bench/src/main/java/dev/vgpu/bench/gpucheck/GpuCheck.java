package dev.vgpu.bench.gpucheck;

import dev.vgpu.bench.colocation.ColocationOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** The main class of {@code vgpu gpu-check}. */
public final class GpuCheck {
  private static final int WRONG_USAGE = 2;

  private GpuCheck() {}

  /**
   * Runs the check.
   *
   * @param arguments see {@link CheckOptions#USAGE}
   * @return the exit code
   * @throws Exception if the results cannot even be written
   */
  public static int run(List<String> arguments) throws Exception {
    List<String> left = new ArrayList<>(arguments);
    if (left.contains("--help") || left.contains("-h")) {
      System.out.print(CheckOptions.USAGE);
      return 0;
    }
    try {
      String step = ColocationOptions.value(left, "--step", "");
      if (!step.isEmpty()) {
        Path work = Path.of(ColocationOptions.value(left, "--work", ""));
        return step(StepName.of(step), work, left.remove("--quick"));
      }
      if (left.remove("--pack")) {
        return Pack.run(left);
      }
      return new CheckRun(CheckOptions.of(left)).run();
    } catch (IllegalArgumentException e) {
      System.err.print("gpu-check: " + e.getMessage() + "\n" + CheckOptions.USAGE);
      return WRONG_USAGE;
    } catch (IOException | IllegalStateException e) {
      System.err.println("gpu-check: " + e.getMessage());
      return 1;
    }
  }

  /** Runs one step, in its own process. */
  private static int step(StepName name, Path work, boolean quick) {
    Findings findings = new Findings(work.resolve(name.word() + ".json"));
    try {
      name.step().run(Place.of(work), findings, quick);
    } catch (Exception e) {
      // Any exception is a finding.
      findings.failure("%s", e.getMessage() == null ? e.toString() : e.getMessage());
      for (StackTraceElement frame : e.getStackTrace()) {
        System.err.println("    at " + frame);
      }
    }
    return findings.hasFailures() ? 1 : 0;
  }
}
