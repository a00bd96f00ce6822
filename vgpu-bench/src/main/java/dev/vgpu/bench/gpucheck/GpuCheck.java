package dev.vgpu.bench.gpucheck;

import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** The main class of {@code vgpu gpu-check}. */
public final class GpuCheck {
  private static final int WRONG_USAGE = 2;

  private GpuCheck() {}

  /**
   * Runs the check.
   *
   * @param options the options of {@code vgpu gpu-check}
   * @return the exit code
   * @throws Exception if the results cannot even be written
   */
  public static int run(CheckOptions options) throws Exception {
    if (options.packFile != null && !options.pack) {
      System.err.println("gpu-check: what is '" + options.packFile + "'?");
      return WRONG_USAGE;
    }
    try {
      return options.pack ? Pack.run(options) : new CheckRun(options).run();
    } catch (IOException | IllegalStateException e) {
      System.err.println("gpu-check: " + e.getMessage());
      return 1;
    }
  }

  /**
   * Runs one step, in its own process.
   *
   * @param arguments the step's name, the working directory, and perhaps {@code --quick}
   * @return the exit code
   */
  public static int step(List<String> arguments) {
    StepName name = StepName.of(arguments.get(0));
    Path work = Path.of(arguments.get(1));
    boolean quick = arguments.contains("--quick");
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
