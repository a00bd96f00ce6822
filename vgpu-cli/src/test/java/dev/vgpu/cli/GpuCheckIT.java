package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code vgpu gpu-check} with the emulator's driver in the place of a GPU's, and without a GPU. */
class GpuCheckIT {
  private static final Path HOME = Path.of(System.getProperty("vgpu.home", ".."));
  private static final long TIMEOUT_SECONDS = 55;

  @TempDir private static Path programs;

  @TempDir private Path directory;

  @BeforeAll
  static void buildProgram() throws InterruptedException {
    Node.buildProgram(programs);
  }

  /** What a process said, and how it ended. */
  private record Ended(int exitCode, String out, String err) {}

  private Ended run(Map<String, String> environment, List<String> command)
      throws IOException, InterruptedException {
    Path out = directory.resolve("out");
    Path err = directory.resolve("err");
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.startsWith("VGPU_"));
    builder.environment().put("VGPU_HOME", HOME.toString());
    builder.environment().put("VGPU_BENCH_PROGRAM", program());
    builder.environment().putAll(environment);
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    boolean ended = process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    process.destroyForcibly().waitFor();
    assertThat(ended).as("%s%s", Files.readString(out), Files.readString(err)).isTrue();
    return new Ended(
        process.exitValue(), Files.readString(out, UTF_8), Files.readString(err, UTF_8));
  }

  private static String program() {
    return programs.resolve("gpu_program").toString();
  }

  private Ended check(Map<String, String> environment, String... arguments)
      throws IOException, InterruptedException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path", ""),
                "dev.vgpu.bench.Bench",
                "gpu-check",
                "--driver",
                driver().toString(),
                "--out",
                directory.resolve("results").toString()));
    command.addAll(List.of(arguments));
    return run(environment, command);
  }

  /** The emulator's libraries in one directory, as a driver's are. */
  private Path driver() throws IOException {
    Path place = Files.createDirectories(directory.resolve("driver"));
    for (GpuDriver driver : ServiceLoader.load(GpuDriver.class)) {
      for (Path library : List.of(driver.cudaLibrary(), driver.nvmlLibrary())) {
        Files.copy(library, place.resolve(library.getFileName()));
      }
    }
    return place;
  }

  @Test
  void stepsRunAndAreWrittenDown() throws Exception {
    Ended ended = check(Map.of(), "--quick", "--only", "machine,costs,quota", "--budget", "50");
    assertThat(ended.exitCode()).as("%s", ended).isZero();
    assertThat(ended.out()).contains("OVER A STAND-IN DRIVER").contains("Emulated GPU");
    List<Path> files;
    try (Stream<Path> all = Files.list(directory.resolve("results"))) {
      files = all.sorted().toList();
    }
    assertThat(files).hasSize(2);
    JsonNode json = new ObjectMapper().readTree(files.get(0).toFile());
    assertThat(json.path("ended").asBoolean()).isTrue();
    for (String step : List.of("machine", "costs", "quota")) {
      assertThat(json.at("/steps/" + step + "/state").asText()).as(step).isEqualTo("ok");
    }
    assertThat(json.at("/steps/machine/figures/doctor/said/ok").asBoolean()).isTrue();
    assertThat(json.at("/steps/quota/figures/churn/over_bytes").asLong(-1)).isZero();
    assertThat(Files.readString(files.get(1))).contains("what came out");
  }

  @Test
  void stepThatHasNoTimeDoesNotStopTheReport() throws Exception {
    Ended ended = check(Map.of(), "--quick", "--only", "machine,shares", "--budget", "1");
    assertThat(ended.exitCode()).as("%s", ended).isOne();
    assertThat(ended.out()).contains("not run").contains("no time left");
  }

  @Test
  void withoutAGpuItFailsAndSaysSo() throws Exception {
    Ended ended = check(Map.of("VGPU_EMULATOR", "devices=0"));
    assertThat(ended.exitCode()).as("%s", ended).isOne();
    assertThat(ended.err())
        .contains("there is no NVIDIA GPU here")
        .contains("CUDA_ERROR_NO_DEVICE")
        .doesNotContain("    at ");
    assertThat(directory.resolve("results")).doesNotExist();
  }

  @Test
  void sessionEndsAllThatItStarted() throws Exception {
    Path pids = directory.resolve("pids");
    String script =
        "sleep 60 & echo $! >>PIDS; (sleep 60 & echo $! >>PIDS); echo $$ >>PIDS; sleep 60";
    Ended ended =
        run(
            Map.of(),
            List.of(
                program(), "session", "0.5", "sh", "-c", script.replace("PIDS", pids.toString())));
    assertThat(ended.exitCode()).as("%s", ended).isEqualTo(124);
    assertThat(Files.readAllLines(pids))
        .hasSize(3)
        .allSatisfy(pid -> assertThat(Path.of("/proc", pid)).doesNotExist());
    assertThat(run(Map.of(), List.of(program(), "session", "20", "sh", "-c", "exit 7")))
        .extracting(Ended::exitCode)
        .isEqualTo(7);
  }
}
