package dev.vgpu.cli;

import java.util.concurrent.Callable;
import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** Prints a script that completes the command's words. */
@Command(
    name = "completion",
    description = "Print a script for bash that completes commands and options.",
    footer = {"", "Use it with: source <(vgpu completion)"})
final class CompletionCommand implements Callable<Integer> {
  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  CompletionCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    context.console().out().print(AutoComplete.bash("vgpu", spec.root().commandLine()));
    context.console().out().flush();
    return 0;
  }
}
