package dev.vgpu.cli.mig;

import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.nvml.mig.MigDriver;
import dev.vgpu.nvml.mig.MigState;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Shows and plans MIG instances, and switches the MIG mode. */
@Command(
    name = "mig",
    description = "Show and plan MIG instances; switch MIG mode.",
    synopsisSubcommandLabel = "COMMAND",
    footer = {"", "Exit codes: 0 done, 1 failed, 2 wrong usage."})
public final class MigCommand implements Runnable {
  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  private MigCommand() {}

  /** {@return the command with its subcommands} */
  public static CommandLine commandLine(CliContext context) {
    return new CommandLine(new MigCommand())
        .addSubcommand(new MigListCommand(context))
        .addSubcommand(new MigPlanCommand(context))
        .addSubcommand(new Enable(context))
        .addSubcommand(new Disable(context));
  }

  /** Fails: a subcommand is required. */
  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "no command is given");
  }

  /** The GPU with a UUID or an index. */
  static MigState gpu(MigDriver driver, String text) throws UserException {
    List<MigState> gpus = driver.gpus();
    for (int i = 0; i < gpus.size(); i++) {
      if (text.equals(Integer.toString(i)) || text.equals(gpus.get(i).gpu().value())) {
        return gpus.get(i);
      }
    }
    throw new UserException(
        "no such GPU: " + text + "; there are " + gpus.stream().map(MigState::gpu).toList(),
        null,
        CommandLine.ExitCode.USAGE);
  }

  /** Switches the mode of one GPU. */
  private abstract static class Switch implements Callable<Integer> {
    private final CliContext context;
    private final boolean on;

    @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
    @Parameters(
        paramLabel = "GPU",
        description = "Which one: its UUID, or its place in 'vgpu mig list', from 0.")
    private String which;

    private Switch(CliContext context, boolean on) {
      this.context = context;
      this.on = on;
    }

    @Override
    public Integer call() throws UserException {
      try (MigDriver driver = MigDriver.open()) {
        MigState state = gpu(driver, which);
        String wanted = "MIG mode of " + state.gpu() + (on ? " is on" : " is off");
        if (state.on() == on && state.pending() == on) {
          context.console().out().println(wanted + " already");
          return 0;
        }
        String pending = driver.switchMode(state.gpu(), on).orElse(null);
        if (pending != null) {
          throw new UserException(
              wanted + " not yet: " + pending, null, CommandLine.ExitCode.SOFTWARE);
        }
        context.console().out().println(wanted);
        context
            .console()
            .out()
            .println("The process that holds the seat sees this after a restart.");
        return 0;
      }
    }
  }

  /** Enables the MIG mode. */
  @Command(
      name = "enable",
      description = {
        "Switch the MIG mode of a GPU on, as root. Nothing may use the GPU meanwhile.",
        "From then on programs run in instances of it only."
      },
      footer = {"", "Exit codes: 0 done, 1 it is not so yet, 2 wrong usage."})
  static final class Enable extends Switch {
    Enable(CliContext context) {
      super(context, true);
    }
  }

  /** Disables the MIG mode. */
  @Command(
      name = "disable",
      description = "Switch the MIG mode of a GPU off, as root. It may have no instances.",
      footer = {"", "Exit codes: 0 done, 1 it is not so yet, 2 wrong usage."})
  static final class Disable extends Switch {
    Disable(CliContext context) {
      super(context, false);
    }
  }
}
