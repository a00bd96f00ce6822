package dev.vgpu.cli.help;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.UserException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Prints the manual page of a command. */
@Command(
    name = "man",
    description = "Print the manual page of a command.",
    footer = {
      "",
      "Read it with: vgpu man run | man -l -",
      "",
      "Exit codes: 0 done, 1 the pages cannot be written, 2 wrong usage."
    })
public final class ManCommand implements Callable<Integer> {
  private final CliContext context;

  @Parameters(
      arity = "0..*",
      paramLabel = "COMMAND",
      description = "The command, for example: mig plan. Default: vgpu itself.")
  private List<String> words = List.of();

  @Option(
      names = "--directory",
      paramLabel = "DIRECTORY",
      description = "Instead, write the pages of all commands there, one file each.")
  private @Nullable Path directory;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  /** Creates the command. */
  public ManCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException {
    CommandSpec found = spec.root();
    for (String word : words) {
      CommandLine next = found.subcommands().get(word);
      if (next == null) {
        throw new ParameterException(
            spec.commandLine(), "no such command: " + found.qualifiedName() + " " + word);
      }
      found = next.getCommandSpec();
    }
    if (directory == null) {
      context.console().out().print(ManPage.of(found));
      context.console().out().flush();
    } else {
      try {
        Files.createDirectories(directory);
        write(found, directory);
      } catch (IOException e) {
        throw new UserException(
            "cannot write the pages to "
                + directory
                + ": "
                + UserException.reason(e)
                + "; name a directory that you may write to",
            e);
      }
    }
    return 0;
  }

  private static void write(CommandSpec spec, Path directory) throws IOException {
    Files.writeString(directory.resolve(ManPage.name(spec) + ".1"), ManPage.of(spec), UTF_8);
    for (CommandLine command : spec.subcommands().values()) {
      write(command.getCommandSpec(), directory);
    }
  }
}
