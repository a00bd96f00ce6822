package dev.vgpu.bench.command;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.demo.DemoCommand;
import dev.vgpu.cli.VgpuCommand;
import dev.vgpu.cli.command.CheckoutCommands;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.report.HtmlReport;
import dev.vgpu.cli.time.NanoClock;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/** The commands of a checkout, as {@code vgpu} runs them. */
class BenchCommandsTest {
  private static final List<String> NAMES = CheckoutCommands.NAMES;

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private Map<String, String> environment = Map.of();

  @TempDir private Path directory;

  private int run(String... args) {
    Console console =
        new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
    CliContext.Pools none =
        options -> {
          throw new IllegalStateException("none of them opens a pool in the command's process");
        };
    return VgpuCommand.run(new CliContext(console, environment, none, NanoClock.system()), args);
  }

  @ParameterizedTest
  @FieldSource("NAMES")
  void everyCommandHasHelp(String command) {
    assertThat(run(command, "--help")).isZero();
    assertThat(out.toString(UTF_8))
        .contains("Usage: vgpu " + command, "Exit codes:")
        .doesNotContain("<main class>");
    assertThat(out.toString(UTF_8).lines()).allMatch(line -> line.length() <= Lines.WIDTH);
  }

  @Test
  void theScriptKnowsThemAll() throws Exception {
    assertThat(Path.of("..", "vgpu")).content(UTF_8).contains("  " + String.join(" | ", NAMES));
  }

  @Test
  void whatTheDemoNeedsOfTheCheckoutIsNamed() {
    assertThat(run("demo")).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("needs a source checkout", "./vgpu demo");
    environment = Map.of("VGPU_HOME", directory.toString());
    assertThat(run("demo")).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("is not built", "mvn");
  }

  @Test
  void badOptionsAreWrongUsage() {
    assertThat(run("demo", "--load", "0")).isEqualTo(2);
    assertThat(run("demo", "--backend", "vfio")).isEqualTo(2);
    assertThat(run("demo", "--part", "1", "--backend", "mig")).isEqualTo(2);
    assertThat(run("demo", "--load", "many")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("--load");
    assertThat(run("chaos", "--minutes", "0")).isEqualTo(2);
    assertThat(run("soak", "--tenants", "0")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("--minutes", "--tenants");
  }

  @Test
  void directoryIsNoTrace() {
    assertThat(run("demo", "--part=1", "--trace", directory.toString())).isEqualTo(1);
    assertThat(err.toString(UTF_8))
        .contains(directory + " is a directory; give a file")
        .doesNotContain("Exception", "--verbose");
  }

  @Test
  void reportThatCannotBeWrittenIsSaidBeforeAnythingRuns() {
    assertThat(
            run(
                "demo",
                "--part=1",
                "--server-class-path",
                "none",
                "--report",
                directory.toString()))
        .isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("cannot be written").doesNotContain("[1/");
  }

  @Test
  void serverThatDoesNotStartIsSaid() {
    String report = directory.resolve("r.html").toString();
    assertThat(
            run(
                "demo",
                "--part=1",
                "--server-class-path",
                "none",
                "--server-class",
                "None",
                "--report",
                report))
        .isEqualTo(1);
    assertThat(err.toString(UTF_8))
        .contains("the sample server did not start", "ClassNotFoundException");
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void reportOfTheDemoNeedsNothingElse() {
    ObjectNode data = new ObjectMapper().createObjectNode().put("text", "</script>");
    String html = HtmlReport.of(DemoCommand.class, "demo", data);
    assertThat(html.contains("{{")).isFalse();
    String own = html.substring(0, html.indexOf("Licensed to the Apache"));
    assertThat(List.of("<script src", "<link", "<img", "@import", "url(")).noneMatch(own::contains);
  }
}
