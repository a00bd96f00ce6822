package dev.vgpu.bench.command;

import dev.vgpu.cli.command.JsonOption;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Unmatched;

/** Runs the GPU check as a process: from a checkout, or from an unpacked bundle. */
@Command(
    name = "gpu-check",
    description = "Check vgpu on this machine's GPU, in less than ten minutes.",
    footer = {
      "",
      "Writes gpu-check-GPU-DRIVER.txt, .json and .emulator: a table, all figures, and settings",
      "that make the emulator as this GPU is. Changes no setting of the card. For tests of the",
      "check itself, --driver DIR takes libcuda.so.1 and libnvidia-ml.so.1 from there, for example",
      "the emulator's.",
      "Exit codes: 0 all steps ended well, 1 a step failed or there is no GPU, 2 wrong usage."
    })
public final class GpuCheckCommand implements Callable<Integer> {
  private static final int WRONG_USAGE = 2;
  private static final long ENDING_SECONDS = 20;

  @Option(
      names = "--out",
      paramLabel = "dir",
      description = "Where the results go (default: here).")
  private String out = "";

  @Option(
      names = "--budget",
      paramLabel = "seconds",
      description = "For all steps together (default 540); what does not fit is left out.")
  private String budget = "";

  @Option(
      names = "--only",
      paramLabel = "steps",
      description =
          "These steps only, with commas: machine, programs, torch, clients, driver, charged,"
              + " quota, leave, level2, costs, shares, colocation, nvml, mig, mps, suspend,"
              + " rm, fidelity.")
  private String only = "";

  @Option(
      names = "--part",
      paramLabel = "1|2",
      description = "The steps of one part only: each part fits into 520 seconds.")
  private String part = "";

  @Option(names = "--driver", paramLabel = "dir", hidden = true)
  private String driver = "";

  @Option(names = "--quick", description = "The shortest form of each step.")
  private boolean quick;

  @Option(names = "--keep", description = "Leave the working directory, with all logs.")
  private boolean keep;

  @Option(
      names = "--pack",
      description =
          "Make the bundle for a machine without Java, compiler and network"
              + " (target/vgpu-gpu-check.tar.gz, or the file named behind it).")
  private boolean pack;

  @Mixin private final JsonOption json = new JsonOption();

  @Unmatched private final List<String> others = new ArrayList<>();

  @Override
  public Integer call() throws IOException, InterruptedException {
    List<String> options = new ArrayList<>(BenchProcess.QUICK_START);
    options.add("-Dvgpu.command.classpath=" + BenchProcess.classPath());
    options.add("-Dvgpu.command.pid=" + ProcessHandle.current().pid());
    List<String> command = BenchProcess.java(options);
    command.add("gpu-check");
    command.addAll(arguments());
    int exitCode = BenchProcess.run(command, "gpu-check", ENDING_SECONDS);
    return exitCode == 0 || exitCode == WRONG_USAGE ? exitCode : 1;
  }

  private List<String> arguments() {
    List<String> arguments = new ArrayList<>();
    if (pack) {
      arguments.add("--pack");
    }
    add(arguments, "--out", out);
    add(arguments, "--budget", budget);
    add(arguments, "--only", only);
    add(arguments, "--part", part);
    add(arguments, "--driver", driver);
    if (quick) {
      arguments.add("--quick");
    }
    if (keep) {
      arguments.add("--keep");
    }
    if (json.isGiven()) {
      arguments.add("--json");
    }
    arguments.addAll(others);
    return arguments;
  }

  private static void add(List<String> arguments, String name, String value) {
    if (!value.isEmpty()) {
      arguments.addAll(List.of(name, value));
    }
  }
}
