package dev.vgpu.cli.command;

import dev.vgpu.cli.console.UserException;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Unmatched;

/**
 * Commands that only a source checkout has, such as the demo and the benchmarks. Their module is
 * found by {@link ServiceLoader}: it is on the class path of {@code ./vgpu}, and in no package.
 */
public interface CheckoutCommands {
  /** The commands' names, in the order in which the help lists them. */
  List<String> NAMES = List.of("demo", "bench", "chaos", "soak", "gpu-check");

  /**
   * {@return the command, as picocli takes it}
   *
   * @param name one of {@link #NAMES}
   * @param context the streams, environment, GPUs and clock of the command
   */
  Object command(String name, CliContext context);

  /**
   * {@return the command; where its module is absent, one that names the way to run it}
   *
   * @param name one of {@link #NAMES}
   * @param context the streams, environment, GPUs and clock of the command
   */
  static Object find(String name, CliContext context) {
    Optional<CheckoutCommands> found = ServiceLoader.load(CheckoutCommands.class).findFirst();
    return found.isPresent() ? found.get().command(name, context) : new Absent(name);
  }

  /** Stands for a command whose module is absent. */
  @Command(description = "Works in a source checkout, as ./vgpu.")
  final class Absent implements Callable<Integer> {
    private final String name;

    @SuppressWarnings("UnusedVariable") // picocli sets it.
    @Unmatched
    private final List<String> arguments = new ArrayList<>();

    private Absent(String name) {
      this.name = name;
    }

    @Override
    public Integer call() throws UserException {
      throw new UserException(
          "vgpu "
              + name
              + " needs a source checkout; run it as ./vgpu "
              + name
              + " in a clone of the repository");
    }
  }
}
