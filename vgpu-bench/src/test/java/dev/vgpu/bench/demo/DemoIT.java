package dev.vgpu.bench.demo;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The demo as a process, with real children, against a server that only sleeps. */
class DemoIT {
  @TempDir private Path directory;
  // The temporary directory also removes the leftovers of a killed demo.
  @TempDir private Path temporary;

  @Test
  void wholeDemoPrintsOneJsonObjectAndWritesTheReport() throws Exception {
    Path report = directory.resolve("report.html");
    Process demo = start(report, "--json");
    drain(demo);
    JsonNode json = new ObjectMapper().readTree(demo.getInputStream().readAllBytes());
    assertThat(demo.waitFor()).isZero();
    assertThat(json.path("online_vgpu_p99_ms").isNumber()).isTrue();
    assertThat(json.path("failed_requests").asLong()).isZero();
    assertThat(json.path("report").asText()).isEqualTo(report.toRealPath().toString());
    assertThat(report).content().contains("online_vgpu_p99_ms");
    assertThat(filesOf(directory)).containsExactly("report.html");
  }

  @ParameterizedTest
  @CsvSource({
    "INT, starting the sample server, 130",
    "INT, measuring what a request costs, 130",
    "INT, online alone, 130",
    "INT, 'both, uncontrolled', 130",
    "TERM, 'both, with vgpu', 143",
    "INT, offline alone, 130",
    "INT, 75/25 burst share, 130",
    "INT, six models, 130",
    "KILL, 'both, with vgpu', 137"
  })
  void endedDemoLeavesNoProcessAndNoReport(String signal, String step, int exitCode)
      throws Exception {
    Process demo = start(directory.resolve("report.html"));
    awaitStep(demo, step);
    List<ProcessHandle> children = demo.descendants().toList();
    kill(signal, demo.pid());
    assertThat(demo.waitFor(20, TimeUnit.SECONDS)).isTrue();
    assertThat(demo.exitValue()).isEqualTo(exitCode);
    for (ProcessHandle child : children) {
      child.onExit().get(20, TimeUnit.SECONDS);
    }
    assertThat(filesOf(directory)).isEmpty();
    if (!signal.equals("KILL")) {
      assertThat(filesOf(temporary)).isEmpty();
    }
  }

  @Test
  void deadServerIsSaid() throws Exception {
    Process demo = start(directory.resolve("report.html"));
    BufferedReader errors = awaitStep(demo, "online alone");
    ProcessHandle server =
        demo.children()
            .filter(child -> commandLine(child).contains(StubServer.class.getName()))
            .findFirst()
            .orElseThrow();
    server.destroyForcibly();
    assertThat(errors.lines().toList())
        .anyMatch(line -> line.contains("the sample server did not answer"));
    assertThat(demo.waitFor()).isEqualTo(1);
    assertThat(filesOf(directory)).isEmpty();
  }

  private Process start(Path report, String... more) throws IOException {
    String classPath = System.getProperty("java.class.path");
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")); // as ./vgpu does
    command.add("-Djava.io.tmpdir=" + temporary);
    command.addAll(
        List.of("-cp", classPath, "dev.vgpu.cli.VgpuCommand", "demo", "--brief", "--part=1"));
    command.addAll(List.of("--server-class-path", classPath));
    command.addAll(List.of("--server-class", StubServer.class.getName()));
    command.addAll(List.of("--report", report.toString()));
    command.addAll(Arrays.asList(more));
    return new ProcessBuilder(command).start();
  }

  private static BufferedReader awaitStep(Process demo, String step) throws IOException {
    BufferedReader errors = new BufferedReader(new InputStreamReader(demo.getErrorStream(), UTF_8));
    List<String> seen = new ArrayList<>();
    for (String line = errors.readLine(); line != null; line = errors.readLine()) {
      seen.add(line);
      if (line.contains("] " + step)) {
        return errors;
      }
    }
    throw new AssertionError("the demo ended before the step '" + step + "': " + seen);
  }

  private static void drain(Process demo) {
    Thread thread =
        new Thread(
            () ->
                new BufferedReader(new InputStreamReader(demo.getErrorStream(), UTF_8))
                    .lines()
                    .forEach(line -> {}),
            "drain");
    thread.setDaemon(true);
    thread.start();
  }

  private static void kill(String signal, long pid) throws Exception {
    // The shell's built-in kill: a minimal system has no kill program.
    Process kill = new ProcessBuilder("sh", "-c", "kill -" + signal + " " + pid).start();
    assertThat(kill.waitFor()).isZero();
  }

  /** From /proc: the JDK's version omits what does not fit a page, and class paths are long. */
  private static String commandLine(ProcessHandle process) {
    try {
      return Files.readString(Path.of("/proc/" + process.pid() + "/cmdline"));
    } catch (IOException e) {
      return ""; // it has just ended
    }
  }

  private static List<String> filesOf(Path directory) throws IOException {
    try (var files = Files.list(directory)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }
}
