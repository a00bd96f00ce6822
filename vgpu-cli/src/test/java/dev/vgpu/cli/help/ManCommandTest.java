package dev.vgpu.cli.help;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.time.NanoClock;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

class ManCommandTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  @TempDir private Path directory;

  @Test
  void pagesTellOfEveryCommandAndEveryOption() throws Exception {
    assertThat(run("man", "--directory", directory.toString())).isZero();
    check(line().getCommandSpec());
  }

  private void check(CommandSpec spec) throws Exception {
    String page = Files.readString(directory.resolve(ManPage.name(spec) + ".1"));
    assertThat(page).startsWith(".TH " + ManPage.name(spec).toUpperCase(Locale.ROOT));
    for (OptionSpec option : spec.options()) {
      String name = option.longestName().replace("-", "\\-");
      assertThat(page.contains(name + "\\fR")).as(page).isEqualTo(!option.hidden());
    }
    for (CommandLine command : spec.subcommands().values()) {
      String name = ManPage.name(command.getCommandSpec()).replace("-", "\\-");
      assertThat(page).contains("\\fB" + name + "\\fR(1)");
      check(command.getCommandSpec());
    }
  }

  @Test
  void pageOfACommandHasTheDefaultsAndTheExitCodes() {
    assertThat(run("man", "run")).isZero();
    assertThat(out.toString(UTF_8))
        .contains(".SH NAME\nvgpu\\-run \\- Run a program, unmodified, under a virtual GPU\n")
        .contains("\\fB\\-\\-memory\\fR=\\fISIZE\\fR\n")
        .contains(".SH EXIT STATUS\nthe program's own; 128 + n if signal n ended it;");
    out.reset();
    assertThat(run("man", "fleet", "simulate")).isZero();
    assertThat(out.toString(UTF_8)).doesNotContain("${DEFAULT");
  }

  @Test
  void commandThatIsNotThereIsRefused() {
    assertThat(run("man", "mig", "plam")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("no such command: vgpu mig plam");
  }

  @Test
  void fishCompletesCommandsAndTheirOptions() {
    assertThat(run("completion", "fish")).isZero();
    assertThat(out.toString(UTF_8).lines())
        .allMatch(line -> line.startsWith("complete -c vgpu "))
        .anyMatch(line -> line.contains("-f -a run -d 'Run a program, unmodified, under a"))
        .contains(
            "complete -c vgpu -n '__fish_seen_subcommand_from ls' -l json"
                + " -d 'Print one JSON object on standard output'")
        .anyMatch(
            line ->
                line.startsWith(
                    "complete -c vgpu -n '__fish_seen_subcommand_from mig; and"
                        + " __fish_seen_subcommand_from plan' -l memory -r"));
  }

  private int run(String... args) {
    return line().execute(args);
  }

  private CommandLine line() {
    Console console =
        new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
    return Fakes.commandLine(
        new CliContext(console, Map.of(), options -> null, NanoClock.system()));
  }
}
