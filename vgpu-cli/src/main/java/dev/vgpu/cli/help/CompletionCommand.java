package dev.vgpu.cli.help;

import dev.vgpu.cli.command.CliContext;
import java.util.concurrent.Callable;
import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Prints a shell script that completes the command's words. */
@Command(
    name = "completion",
    description = "Print a script for a shell that completes commands and options.",
    footer = {
      "",
      "In bash and zsh, use it with: source <(vgpu completion). In fish: vgpu completion fish | source"
    })
public final class CompletionCommand implements Callable<Integer> {
  /** The supported shells; zsh uses bash's script. */
  enum Shell {
    BASH,
    ZSH,
    FISH
  }

  private final CliContext context;

  @Parameters(
      arity = "0..1",
      paramLabel = "bash|zsh|fish",
      description = "The shell. Default: bash.")
  private Shell shell = Shell.BASH;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  /** Creates the command. */
  public CompletionCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() {
    CommandSpec root = spec.root();
    context
        .console()
        .out()
        .print(
            shell == Shell.FISH
                ? FishCompletion.of(root)
                : AutoComplete.bash("vgpu", root.commandLine()));
    context.console().out().flush();
    return 0;
  }
}
