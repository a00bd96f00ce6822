package dev.vgpu.bench.command;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.Signals;
import dev.vgpu.spi.GpuDriver;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two minutes of chaos with a fixed sequence of steps, and some with a random one. */
class ChaosIT {
  private static final String SEED = "3";
  private static final String MINUTES = "2";

  /** The length of the run with random steps. */
  private static final String OTHER_MINUTES = "0.4";

  private static final long SEEDS = 1_000_000;
  private static final int TAIL_LINES = 12;

  /** By their numbers in the program. */
  private static final String ALL_BUT_GRAPHS = "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,16,18,19,20";

  private static final String QUOTA = Long.toString(32L << 30);

  /** How often all threads come to rest, and what they do in between. */
  private static final int RESTS = 500;

  private static final int OPERATIONS = 50;

  @TempDir Path temporary;

  private ProcessBuilder chaos(String... arguments) {
    List<String> command = new ArrayList<>(Commands.java());
    command.addAll(List.of("dev.vgpu.cli.VgpuCommand", "chaos"));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().put("VGPU_HOME", System.getProperty("vgpu.home"));
    return builder
        .redirectOutput(temporary.resolve("out").toFile())
        .redirectError(temporary.resolve("err").toFile());
  }

  private String said(String file) throws Exception {
    return Files.readString(temporary.resolve(file), UTF_8);
  }

  @Test
  @Timeout(value = 6, unit = TimeUnit.MINUTES)
  void twoMinutesWithTheSameSeedHold() throws Exception {
    JsonNode result = run(SEED, MINUTES);
    assertThat(result.path("counts").path("seat_killed").asInt()).isPositive();
    JsonNode did = result.path("programs_did");
    assertThat(did.path("entered").asInt()).as("leases beside the first: %s", did).isPositive();
    assertThat(did.path("taken").asInt()).as("memory of others: %s", did).isPositive();
  }

  @Test
  @Timeout(value = 6, unit = TimeUnit.MINUTES)
  void otherStepsHold() throws Exception {
    JsonNode ignored = run(Long.toString(1 + Math.floorMod(TestSeed.seed(), SEEDS)), OTHER_MINUTES);
  }

  /** A driver refuses to synchronise a context in which a stream is being captured. */
  @Test
  void programsThreadsComeToRestOnlyWhileNobodyCaptures() throws Exception {
    Path driver = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow().cudaLibrary();
    Map<String, String> graphsOnly =
        Map.of("LD_LIBRARY_PATH", driver.getParent().toString(), "CHAOS_WITHOUT", ALL_BUT_GRAPHS);
    String seed = Long.toString(TestSeed.seed());
    try (Node node = Node.open(Map.of());
        Child program = node.start(graphsOnly, "chaos", seed, "16", QUOTA, "nofork")) {
      Answer last = program.awaitReady().ask("read");
      for (int i = 0; i < RESTS; i++) {
        double before = last.number("operations");
        for (last = program.ask("go"); last.number("operations") < before + OPERATIONS; ) {
          last = program.ask("read");
        }
        last = program.ask("rest");
        assertThat(last.number("error")).as("%s", last.line()).isZero();
      }
    }
  }

  private JsonNode run(String seed, String minutes) throws Exception {
    Process process = chaos("--seed", seed, "--minutes", minutes, "--json").start();
    assertThat(process.waitFor(5, TimeUnit.MINUTES)).as("%s", said("err")).isTrue();
    System.err.print(said("err"));
    System.err.print(said("out"));
    JsonNode result = new ObjectMapper().readTree(said("out"));
    if (result.has("failure")) {
      fail(told(result));
    }
    assertThat(process.exitValue()).as("%s", said("err")).isZero();
    assertThat(result.path("seed").asText()).isEqualTo(seed);
    return result;
  }

  /** {@return the failure first, because build reports are cut; then the events before it} */
  private static String told(JsonNode result) throws IOException {
    Path logs = Path.of(result.path("logs").asText());
    return String.join(
        "\n",
        result.path("failure").asText(),
        tail(logs.resolve("steps.log")),
        tail(logs.resolve("stderr.log")),
        tail(logs.resolve("threads.log")),
        result.toString());
  }

  private static String tail(Path file) throws IOException {
    if (!Files.exists(file)) {
      return "(no " + file + ")";
    }
    List<String> lines = Files.readAllLines(file, ISO_8859_1);
    int first = Math.max(0, lines.size() - TAIL_LINES);
    return file + ":\n" + String.join("\n", lines.subList(first, lines.size()));
  }

  @Test
  void interruptedItLeavesNothingBehind() throws Exception {
    Process process = chaos("--seed", "1", "--minutes", "5").start();
    Path[] directory = new Path[1];
    Commands.await(
        () -> {
          directory[0] = runDirectoryOf(process);
          return directory[0] != null || !process.isAlive();
        },
        said("err"));
    assertThat(directory[0]).as("%s", said("err")).isNotNull();
    Signals.send(process.pid(), "INT");
    assertThat(process.waitFor(50, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(130);
    assertThat(directory[0].getParent()).doesNotExist();
    Commands.await(
        () -> ProcessHandle.allProcesses().noneMatch(each -> isOf(each, directory[0])),
        said("err"));
  }

  /** The run directory of one of the process's descendants; null if there is none yet. */
  private static Path runDirectoryOf(Process process) {
    List<String> inherited = environment(process.pid()).toList();
    return process
        .descendants()
        .flatMap(each -> environment(each.pid()))
        .filter(variable -> variable.startsWith("VGPU_RUN_DIR=") && !inherited.contains(variable))
        .map(variable -> Path.of(variable.substring("VGPU_RUN_DIR=".length())))
        .filter(path -> path.startsWith("/tmp"))
        .findFirst()
        .orElse(null);
  }

  private static boolean isOf(ProcessHandle process, Path directory) {
    return environment(process.pid()).anyMatch(("VGPU_RUN_DIR=" + directory)::equals);
  }

  private static Stream<String> environment(long pid) {
    try {
      Path file = Path.of("/proc", Long.toString(pid), "environ");
      return Stream.of(Files.readString(file, ISO_8859_1).split("\0", -1));
    } catch (IOException e) {
      return Stream.of(); // it has just ended
    }
  }
}
