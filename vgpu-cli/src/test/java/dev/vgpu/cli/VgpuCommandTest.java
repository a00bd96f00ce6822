package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.time.NanoClock;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.PhysicalGpu;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

class VgpuCommandTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private Map<String, String> environment = Map.of();
  private CliContext.Pools pools = options -> pool("host", usable());

  @TempDir private Path directory;

  @Test
  void noCommandIsWrongUsage() {
    assertThat(run()).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("no command is given").contains("--help");
  }

  @Test
  void unknownCommandSuggestsTheNearest() {
    assertThat(run("devcies")).isEqualTo(2);
    assertThat(err.toString(UTF_8))
        .contains("there is no command 'devcies'")
        .contains("Did you mean: vgpu devices");
    assertThat(out.toString(UTF_8)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "demo",
        "devices",
        "doctor",
        "simulate",
        "fleet",
        "bench",
        "chaos",
        "soak",
        "gpu-check",
        "completion"
      })
  void everyCommandHasHelp(String command) {
    assertThat(run(command, "--help")).isZero();
    assertThat(out.toString(UTF_8)).contains("Usage: vgpu " + command);
  }

  @Test
  void commandThatIsReadAloneIsTheSame() {
    CliContext context =
        context(new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8)));
    CommandLine whole = VgpuCommand.commandLine(context);
    assertThat(whole.getSubcommands()).containsKeys("run", "ls", "completion");
    whole
        .getSubcommands()
        .forEach(
            (name, command) -> {
              CommandLine alone = VgpuCommand.commandLine(context, name).getSubcommands().get(name);
              assertThat(command.getCommandName()).isEqualTo(name);
              assertThat(alone.getUsageMessage()).isEqualTo(command.getUsageMessage());
              assertThat(alone.getSubcommands().keySet())
                  .isEqualTo(command.getSubcommands().keySet());
            });
  }

  @ParameterizedTest
  @ValueSource(strings = {"ls", "devices", "help", "top --count"})
  void commandIsTheSameWithAndWithoutTheParser(String command) {
    String[] args = command.split(" ", -1);
    List<CliContext.Pools> cases =
        List.of(
            pools,
            options -> {
              throw new VgpuException("no GPU answers");
            },
            options -> {
              throw new IllegalStateException();
            });
    for (CliContext.Pools each : cases) {
      pools = each;
      int parsed = run(args);
      String texts = out.toString(UTF_8) + err;
      out.reset();
      err.reset();
      Console console =
          new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
      assertThat(VgpuCommand.run(context(console), args)).isEqualTo(parsed);
      assertThat(out.toString(UTF_8) + err).isEqualTo(texts).isNotEmpty();
      out.reset();
      err.reset();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "--memory-low=20 --memory-high=10, low watermark is above the high one",
    "--memory-low=5, --memory-low and --memory-high belong together",
    "--shortest-turn=60ms, shortest turn is above the longest",
    "--shortest-turn=0s, turn length must be above 0: --shortest-turn=0s",
    "--longest-turn=1ms, --shortest-turn=2ms --longest-turn=1ms",
    "--idle-linger=11s, a duration is not within 0 to 10s: --idle-linger=11s",
    "--reclaim-ask=999h, --reclaim-ask=999h",
    "--memory-low=9 --memory-high=101, --memory-high=101",
    "--offline-floor=101, --offline-floor=101",
    "--oversubscribe=90, --oversubscribe=90",
    "--idle-linger=1d, not a duration: '1d'",
    "--sharing=some, --sharing",
    "--web=http://host, not an address: 'http://host'",
    "--web=localhost:70000, not an address: 'localhost:70000'",
  })
  void serveRefusesSettingsThatMakeNoSense(String options, String message) {
    assertThat(run(("serve " + options).split(" ", -1))).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains(message);
  }

  @Test
  void tokenThatIsInNoFileIsSaid() {
    assertThat(run("serve", "--web", "--web-token", directory.toString())).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains(directory + " is a directory").doesNotContain("chmod");
    assertThat(run("serve", "--web", "--web-token", directory + "/none")).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("there is no file " + directory + "/none");
  }

  @ParameterizedTest
  @CsvSource({
    "cdi --check DIR/none, cannot read DIR/none: there is no such file",
    "cdi --check DIR/text, DIR/text is not JSON",
    "man --directory DIR/text run, cannot write the pages to DIR/text: a file of that name",
    "fleet simulate DIR, cannot read the trace DIR: ",
    "fleet simulate DIR/none, cannot read the trace DIR/none: there is no such file",
    "doctor --bundle DIR/text, cannot write DIR/text: a file of that name is in the way",
  })
  void filesThatCannotBeUsedAreNamedInPlainWords(String command, String message) throws Exception {
    Files.writeString(directory.resolve("text"), "some text");
    String there = directory.toString();
    assertThat(run(command.replace("DIR", there).split(" ", -1))).isEqualTo(1);
    assertThat(err.toString(UTF_8))
        .contains(message.replace("DIR", there))
        .doesNotContain("Exception", "--verbose");
  }

  @ParameterizedTest
  @ValueSource(strings = {"suspend", "resume"})
  void defaultsInTheHelpAreWrittenAsOptionsAre(String command) {
    assertThat(run(command, "--help")).isZero();
    assertThat(out.toString(UTF_8)).contains("Default: 1m.").doesNotContain("PT");
  }

  @Test
  void simulatesAFileAndWritesItsReport() throws Exception {
    Path file = directory.resolve("mix.yaml");
    Files.writeString(
        file,
        "tenants: [{name: a, count: 2, arrivals: {poisson: {rate: 100}},"
            + " request: {kernels: 2, kernelTime: 3ms}}]");
    Path report = directory.resolve("report.html");
    String[] command = {"simulate", file.toString(), "--duration=20s", "--seed=5"};
    assertThat(run(command)).isZero();
    assertThat(out.toString(UTF_8))
        .contains("mix.yaml: 20 s, seed 5")
        .contains("held %", "p99 ms", "a-1", "a-2")
        .containsPattern("simulated 20 s in .* times faster than real time");
    String first = figuresOf(command);
    assertThat(figuresOf(command)).isEqualTo(first);
    assertThat(run("simulate", file.toString(), "--duration=5s", "--report=" + report)).isZero();
    assertThat(Files.readString(report)).contains("vgpu simulation report", "a-2");
  }

  private String figuresOf(String[] command) throws Exception {
    out.reset();
    List<String> arguments = new ArrayList<>(List.of(command));
    arguments.add("--json");
    assertThat(run(arguments.toArray(String[]::new))).isZero();
    JsonNode figures = new ObjectMapper().readTree(out.toString(UTF_8));
    assertThat(figures.path("tenants")).hasSize(2);
    assertThat(figures.path("times_faster").asDouble()).isPositive();
    return figures.path("gpus").toString() + figures.path("tenants");
  }

  @Test
  void simulationThatMakesNoSenseFails() throws Exception {
    Path file = directory.resolve("mix.yaml");
    Files.writeString(file, "tenants:\n  - {name: a, polcy: burst}\n");
    assertThat(run("simulate", file.toString())).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("mix.yaml, line 2, column 5: 'arrivals' is missing");
    assertThat(run("simulate", directory.resolve("no.yaml").toString())).isEqualTo(1);
    assertThat(run("simulate", file.toString(), "--duration=1ms")).isEqualTo(2);
    assertThat(run("simulate")).isEqualTo(2);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"ls", "devices", "doctor --json", "man run", "usage", "run --help", "--help"})
  void outputThatIsLostFailsTheCommand(String command) {
    OutputStream full =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw new IOException("No space left on device");
          }
        };
    CliContext context =
        context(new Console(new PrintStream(full, true, UTF_8), new PrintStream(err, true, UTF_8)));
    assertThat(VgpuCommand.run(context, command.split(" ", -1))).isEqualTo(1);
    assertThat(err.toString(UTF_8)).startsWith("vgpu: cannot write the output: ").hasLineCount(1);
  }

  /** The process shows its version before it has a console. */
  @Test
  void versionThatIsLostFailsTheProcess() throws Exception {
    List<String> command = new ArrayList<>(CommandNode.javaCommand());
    command.addAll(List.of("dev.vgpu.cli.VgpuCommand", "--version"));
    Process process =
        new ProcessBuilder(command).redirectOutput(Path.of("/dev/full").toFile()).start();
    assertThat(process.errorReader(UTF_8).readLine()).startsWith("vgpu: cannot write the output: ");
    assertThat(process.waitFor()).isEqualTo(1);
  }

  @Test
  void helpListsTheCommands() {
    assertThat(run("--help")).isZero();
    assertThat(out.toString(UTF_8))
        .contains("devices", "doctor", "completion")
        .as("they need a checkout")
        .doesNotContain("  demo ", "  bench ", "  chaos ", "  soak ", "  gpu-check ");
    out.reset();
    environment = Map.of("VGPU_HOME", directory.toString());
    assertThat(run("--help")).isZero();
    assertThat(out.toString(UTF_8))
        .contains("devices", "  demo ", "  bench ", "  chaos ", "  soak ", "  gpu-check ");
  }

  /** A line ends only where the next word does not fit, or at the end of a sentence. */
  @ParameterizedTest
  @ValueSource(strings = {"ls", "top", "serve", "doctor", "run", "devices", "usage", "cdi"})
  void textsOfTheHelpFillTheirLines(String command) {
    assertThat(run(command, "--help")).isZero();
    List<String> lines = out.toString(UTF_8).lines().toList();
    assertThat(lines).allMatch(line -> line.length() <= Lines.WIDTH);
    for (int i = 1; i < lines.size(); i++) {
      String before = lines.get(i - 1);
      String line = lines.get(i);
      boolean isText = before.matches("(?!Usage:)\\S.*[^.:]") && line.matches("\\S.*");
      assertThat(isText && before.length() + 2 + line.split(" ", 2)[0].length() < Lines.WIDTH)
          .as("%s%n%s", before, line)
          .isFalse();
    }
  }

  @Test
  void versionIsOneLine() {
    assertThat(run("--version")).isZero();
    assertThat(out.toString(UTF_8)).startsWith("vgpu ").hasLineCount(1);
  }

  @Test
  void devicesAreListed() {
    assertThat(run("devices")).isZero();
    assertThat(out.toString(UTF_8)).contains("host", "Test GPU", "16.0 GiB", "machine's CPU");
  }

  @Test
  void devicesAsJsonAreOneObject() throws Exception {
    assertThat(run("devices", "--json")).isZero();
    JsonNode device = json().path("devices").path(0);
    assertThat(device.path("id").asText()).isEqualTo("host");
    assertThat(device.path("memory_bytes").asLong()).isEqualTo(16L << 30);
  }

  @Test
  void hostIsNotMentionedBesideAGpu() {
    pools = options -> pool("GPU-1", usable());
    assertThat(run("devices")).isZero();
    assertThat(out.toString(UTF_8)).doesNotContain("machine's CPU");
  }

  @Test
  void doctorIsContentWhenABackendEnforces() throws Exception {
    assertThat(run("doctor")).isZero();
    assertThat(out.toString(UTF_8))
        .contains("in-process: available", "nvml: no: no driver", "machine's CPU");
    out.reset();
    assertThat(run("doctor", "--json")).isZero();
    assertThat(json().path("ok").asBoolean()).isTrue();
    assertThat(json().path("backends")).hasSize(2);
    assertThat(json().path("host_stands_for_cpu").asBoolean()).isTrue();
  }

  @Test
  void doctorFailsWhenNothingEnforces() throws Exception {
    pools = options -> pool("host", BackendStatus.ofUnavailable("in-process", "broken; mend it"));
    assertThat(run("doctor", "--json")).isEqualTo(1);
    assertThat(json().path("ok").asBoolean()).isFalse();
    assertThat(json().path("problems")).hasSize(1);
  }

  @Test
  void doctorSaysWhyNoPoolOpens() {
    pools =
        options -> {
          throw new IllegalStateException("no implementation of vgpu found");
        };
    assertThat(run("doctor")).isEqualTo(1);
    assertThat(out.toString(UTF_8)).contains("Missing: no implementation of vgpu found");
  }

  @Test
  void failureIsOneLineWithoutAStackTrace() {
    pools =
        options -> {
          throw new IllegalStateException("the driver is asleep");
        };
    assertThat(run("devices")).isEqualTo(1);
    assertThat(err.toString(UTF_8))
        .contains("vgpu: the driver is asleep")
        .doesNotContain("at dev.");
    err.reset();
    assertThat(run("devices", "--verbose")).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("at dev.vgpu");
    err.reset();
    environment = Map.of("VGPU_DEBUG", "1");
    assertThat(run("devices")).isEqualTo(1);
    assertThat(err.toString(UTF_8)).contains("at dev.vgpu");
  }

  @Test
  void completionIsAScript() {
    assertThat(run("completion")).isZero();
    assertThat(out.toString(UTF_8)).startsWith("#!").contains("complete -F", "doctor");
  }

  @ParameterizedTest
  @ValueSource(strings = {"demo", "bench", "chaos --minutes 1", "soak", "gpu-check"})
  void whatNeedsACheckoutSaysSo(String command) {
    assertThat(run(command.split(" ", -1))).isEqualTo(1);
    assertThat(err.toString(UTF_8))
        .contains("needs a source checkout", "./vgpu " + command.split(" ", 2)[0] + " in a clone");
  }

  private int run(String... args) {
    Console console =
        new Console(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
    return VgpuCommand.commandLine(context(console), args).execute(args);
  }

  private CliContext context(Console console) {
    return new CliContext(console, environment, pools, NanoClock.system());
  }

  private JsonNode json() throws Exception {
    return new ObjectMapper().readTree(out.toByteArray());
  }

  private static BackendStatus usable() {
    return BackendStatus.ofAvailable(
        "in-process", Capabilities.builder().compute(Capabilities.Compute.TURNS).build());
  }

  private static GpuPool pool(String id, BackendStatus backend) {
    PhysicalGpu gpu = mock(PhysicalGpu.class);
    when(gpu.id()).thenReturn(new GpuId(id));
    when(gpu.model()).thenReturn("Test GPU");
    when(gpu.memory()).thenReturn(MemorySize.ofGibibytes(16));
    when(gpu.usableMemory()).thenReturn(MemorySize.ofGibibytes(15));
    when(gpu.provider()).thenReturn("test");
    GpuPool pool = mock(GpuPool.class);
    when(pool.gpus()).thenReturn(List.of(gpu));
    when(pool.leases()).thenReturn(List.of());
    when(pool.backends())
        .thenReturn(List.of(BackendStatus.ofUnavailable("nvml", "no driver"), backend));
    return pool;
  }
}
