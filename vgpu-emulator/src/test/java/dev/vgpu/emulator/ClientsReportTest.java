package dev.vgpu.emulator;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The report of {@code ./vgpu clients}, on what runs would have left. */
@Timeout(value = 300, unit = TimeUnit.SECONDS)
class ClientsReportTest {
  @TempDir Path out;

  private record Report(int status, String text) {}

  @BeforeEach
  void leaveOneStep() throws IOException {
    steps("cupy|1.0|256MiB|50");
    write("cupy.bare.out", "sum 3\n");
    write("cupy.vgpu.out", "sum 3\n");
    write("cupy.usage", "{\"leases\": [{\"gpu_seconds\": 2.0, \"launches\": 7}]}");
    times("0 10000", "0 10000");
  }

  /** Half of the GPU: its two seconds there take four. */
  @ParameterizedTest
  @CsvSource({"14900, held", "15100, slower"})
  void onlyTheGpusPartMayTakeLonger(int ms, String verdict) throws Exception {
    times("0 10000", "0 " + ms);
    assertVerdict(verdict);
  }

  @ParameterizedTest
  @CsvSource({"12900, held", "13100, slower"})
  void withoutAShareNothingMay(int ms, String verdict) throws Exception {
    steps("cupy|1.0|256MiB|");
    times("0 10000", "0 " + ms);
    assertVerdict(verdict);
  }

  @Test
  void ofSeveralRunsTheMedianCounts() throws Exception {
    times("0 10000\n0 10100\n0 1", "0 99999\n0 11000\n0 9000");
    assertVerdict("held");
    times("0 10000\n0 10100\n0 1", "0 99999\n0 99998\n0 9000");
    assertVerdict("slower");
  }

  @Test
  void aRunThatEndsInAnotherWayOnceIsAnotherExitStatus() throws Exception {
    times("0 10000\n0 10000", "0 10000\n1 10000");
    assertVerdict("exit status");
    times("0 10000", "");
    assertVerdict("exit status");
  }

  @Test
  void anotherOutputGoesBeforeTime() throws Exception {
    times("0 10000", "0 99999");
    write("cupy.vgpu.out", "sum 4\n");
    assertVerdict("output");
  }

  @Test
  void theHeadSaysTheRule() throws Exception {
    assertThat(report("").text())
        .contains("slower: vgpu, s > bare, s + GPU, s x (100 / share - 1)");
  }

  private void assertVerdict(String verdict) throws Exception {
    Report table = report("");
    assertThat(table.text().strip()).endsWith("  " + verdict);
    assertThat(table.status()).isEqualTo(verdict.equals("held") ? 0 : 1);
    assertThat(report("1").text()).contains("\"verdict\": \"" + verdict + "\"");
  }

  private void steps(String line) throws IOException {
    write("steps", line + "\n");
  }

  private void times(String bare, String vgpu) throws IOException {
    write("cupy.bare.time", bare + "\n");
    write("cupy.vgpu.time", vgpu.isEmpty() ? "" : vgpu + "\n");
  }

  private void write(String name, String text) throws IOException {
    Files.writeString(out.resolve(name), text);
  }

  private Report report(String json) throws IOException, InterruptedException {
    Path script = Path.of("../build/clients/report.sh").toAbsolutePath();
    ProcessBuilder builder = new ProcessBuilder("bash", script.toString(), out.toString());
    builder.environment().put("AS_JSON", json);
    Process process = builder.redirectErrorStream(true).start();
    String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    return new Report(process.waitFor(), text);
  }
}
