package dev.vgpu.cli.bench;

import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.SourceCheckout;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Unmatched;

/** Runs vgpu-bench as a process. */
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
  private final CliContext context;

  @Parameters(
      arity = "0..1",
      paramLabel = "name",
      description = "Which benchmark, for example turns.")
  private String name = "";

  @Mixin private final JsonOption json = new JsonOption();

  @Unmatched private final List<String> others = new ArrayList<>();

  /** Creates the command. */
  public BenchCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException, IOException, InterruptedException {
    SourceCheckout checkout = SourceCheckout.require(context.environment(), "bench");
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                "-cp",
                checkout.classPath("vgpu-bench", "vgpu-bench"),
                "dev.vgpu.bench.Bench"));
    if (!name.isEmpty()) {
      command.add(name);
    }
    command.addAll(others);
    if (json.isGiven()) {
      command.add("--json");
    }
    Process process = new ProcessBuilder(command).inheritIO().start();
    Thread hook = new Thread(process::destroy, "vgpu-bench-end");
    Runtime.getRuntime().addShutdownHook(hook);
    int exitCode = process.waitFor();
    Runtime.getRuntime().removeShutdownHook(hook);
    return exitCode == 0 ? 0 : 1;
  }
}
