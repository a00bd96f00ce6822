package dev.vgpu.bench.command;

import dev.vgpu.bench.gpucheck.CheckOptions;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

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

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Mixin final CheckOptions options = new CheckOptions();

  @Override
  public Integer call() throws IOException, InterruptedException {
    List<String> java = new ArrayList<>(BenchProcess.QUICK_START);
    java.add("-Dvgpu.command.classpath=" + BenchProcess.classPath());
    java.add("-Dvgpu.command.pid=" + ProcessHandle.current().pid());
    List<String> command = BenchProcess.java(java);
    command.add("gpu-check");
    command.addAll(BenchProcess.arguments(spec));
    int exitCode = BenchProcess.run(command, "gpu-check", ENDING_SECONDS);
    return exitCode == 0 || exitCode == WRONG_USAGE ? exitCode : 1;
  }
}
