package dev.vgpu.bench.harness;

import java.util.List;
import picocli.CommandLine;
import picocli.CommandLine.Mixin;

/** The arguments of a process that a command starts. */
public final class Arguments {
  private Arguments() {}

  /** Has the options as the command has them. */
  private static final class Command {
    @SuppressWarnings("UnusedVariable") // picocli reads it.
    @Mixin
    final Object options;

    Command(Object options) {
      this.options = options;
    }
  }

  /**
   * {@return the command's options, with the values of the arguments}
   *
   * @param options those that the command has as a mixin
   * @param arguments what the command passed on
   * @throws CommandLine.ParameterException if one is not valid; the message says why
   */
  public static <T> T parse(T options, List<String> arguments) {
    Object ignored =
        CommandLine.populateCommand(new Command(options), arguments.toArray(String[]::new));
    return options;
  }
}
