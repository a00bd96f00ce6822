package dev.vgpu.bench.command;

import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.ExitCodes;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Unmatched;

/** Runs benchmarks as a process. */
@Command(
    name = "bench",
    description = "Run the benchmarks of a source checkout, beside their references.",
    footer = {
      "",
      "Without a name, all run. What is not known here goes to the benchmark, for example",
      "vgpu bench turns -f 1.",
      "Exit codes: 0 done, 1 failed, 2 wrong usage."
    })
public final class BenchCommand implements Callable<Integer> {
  private static final long ENDING_SECONDS = 20;

  @Parameters(
      arity = "0..1",
      paramLabel = "name",
      description = "Which benchmark, for example turns.")
  private String name = "";

  @Mixin private final JsonOption json = new JsonOption();

  @Unmatched private final List<String> others = new ArrayList<>();

  @Override
  public Integer call() throws IOException, InterruptedException {
    List<String> command = BenchProcess.java(List.of());
    if (!name.isEmpty()) {
      command.add(name);
    }
    command.addAll(others);
    if (json.isGiven()) {
      command.add("--json");
    }
    int exitCode = BenchProcess.run(command, "bench", ENDING_SECONDS);
    return exitCode == ExitCodes.DONE || exitCode == ExitCodes.USAGE ? exitCode : ExitCodes.FAILED;
  }
}
