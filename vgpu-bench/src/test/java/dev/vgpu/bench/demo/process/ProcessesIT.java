package dev.vgpu.bench.demo.process;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The demo's second part as a process, over the emulator. Its figures are not checked. */
class ProcessesIT {
  private Path directory;

  // Not @TempDir: the path of a Unix socket must be short.
  @BeforeEach
  void make() throws Exception {
    directory = Files.createTempDirectory(Path.of("/tmp"), "vgpu-d");
  }

  @AfterEach
  void remove() throws Exception {
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
    }
  }

  @Test
  void programsShareADeviceAndTheReportShowsIt() throws Exception {
    Path report = directory.resolve("report.html");
    Process demo = start("--json", "--report", report.toString());
    JsonNode json = new ObjectMapper().readTree(demo.getInputStream().readAllBytes());
    assertThat(demo.waitFor()).isZero();
    JsonNode processes = json.path("processes");
    assertThat(processes.path("tenants").findValuesAsText("name"))
        .containsExactly("fixed-50", "burst-30", "best-effort", "online");
    assertThat(processes.path("tenants").findValuesAsText("backend")).containsOnly("cuda-hook");
    assertThat(processes.path("online_beside").path("requests").asLong()).isPositive();
    JsonNode hoard = processes.path("hoard");
    assertThat(hoard.path("refusal").asText()).isEqualTo("CUDA_ERROR_OUT_OF_MEMORY");
    assertThat(hoard.path("bytes").asLong()).isBetween(1L, hoard.path("quota_bytes").asLong());
    assertThat(report).content().contains("online_beside");
  }

  @ParameterizedTest
  @CsvSource({"mps, fixed-40 fixed-30 fixed-10 online", "mig, fixed-42 fixed-28 fixed-14 online"})
  void theBackendThatIsNamedServesAllOfThem(String backend, String names) throws Exception {
    Path report = directory.resolve("report.html");
    Process demo = start("--json", "--backend", backend, "--report", report.toString());
    JsonNode json = new ObjectMapper().readTree(demo.getInputStream().readAllBytes());
    assertThat(demo.waitFor()).isZero();
    JsonNode processes = json.path("processes");
    assertThat(processes.path("tenants").findValuesAsText("name"))
        .containsExactly(names.split(" ", -1));
    assertThat(processes.path("tenants").findValuesAsText("backend"))
        .hasSize(4)
        .containsOnly(backend);
    assertThat(processes.path("online_beside").path("requests").asLong()).isPositive();
    assertThat(processes.path("hoard").path("bytes").asLong())
        .isBetween(1L, processes.path("hoard").path("quota_bytes").asLong());
    assertThat(report).content().contains("Backend " + backend + ":");
  }

  @ParameterizedTest
  @ValueSource(strings = {"INT", "KILL"})
  void endedDemoLeavesNoProcess(String signal) throws Exception {
    Process demo = start("--report", directory.resolve("report.html").toString());
    BufferedReader errors = new BufferedReader(new InputStreamReader(demo.getErrorStream(), UTF_8));
    String line = errors.readLine();
    while (line != null && !line.contains("50 fixed")) {
      line = errors.readLine();
    }
    assertThat(line).isNotNull();
    List<ProcessHandle> descendants = demo.descendants().toList();
    new ProcessBuilder("sh", "-c", "kill -" + signal + " " + demo.pid()).start().waitFor();
    assertThat(demo.waitFor(20, TimeUnit.SECONDS)).isTrue();
    for (ProcessHandle descendant : descendants) {
      descendant.onExit().get(20, TimeUnit.SECONDS);
    }
  }

  private Process start(String... more) throws Exception {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")); // as ./vgpu does
    command.add("-Djava.io.tmpdir=" + directory);
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of("dev.vgpu.cli.VgpuCommand", "demo", "--brief"));
    if (!List.of(more).contains("--backend")) {
      command.add("--part=2");
    }
    command.addAll(
        List.of(
            "--programs",
            Path.of(System.getProperty("vgpu.home"), "samples/cuda-programs/target/programs")
                .toString()));
    command.addAll(List.of(more));
    return new ProcessBuilder(command).start();
  }
}
