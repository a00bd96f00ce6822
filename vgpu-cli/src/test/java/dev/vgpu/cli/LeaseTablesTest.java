package dev.vgpu.cli;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuLease;
import dev.vgpu.GpuPool;
import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.cli.console.Console;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code ls} and {@code top}. */
class LeaseTablesTest {
  private static final VirtualGpuRequest FIXED =
      VirtualGpuRequest.builder()
          .name("a-model-with-a-long-name")
          .memory(MemorySize.ofMebibytes(1536))
          .policy(SharePolicy.FIXED_SHARE)
          .computePercent(50)
          .preemptionClass(PreemptionClass.NEARLINE)
          .build();
  private static final VirtualGpuRequest REST =
      VirtualGpuRequest.builder()
          .name("batch")
          .memory(MemorySize.ofGibibytes(10))
          .preemptionClass(PreemptionClass.OFFLINE)
          .build();

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final GpuPool pool = Fakes.pool();
  private Console console = Fakes.console(out, err);

  private static List<GpuLease> leases(Duration fixed, Duration rest) {
    return List.of(
        Fakes.lease(FIXED, fixed, MemorySize.ofMebibytes(100)),
        Fakes.lease(REST, rest, MemorySize.ZERO));
  }

  @Test
  void lsShowsWhoHoldsWhat() {
    List<GpuLease> leases = leases(Duration.ZERO, Duration.ZERO);
    when(pool.leases()).thenReturn(leases);
    assertThat(run("ls")).isZero();
    assertThat(out.toString(UTF_8).lines())
        .hasSize(3)
        .anyMatch(line -> line.matches("a-model-with-a-long-name-1 +nearline +fixed 50% .*"))
        .anyMatch(line -> line.contains("100 MiB/1.5 GiB") && line.contains("(java)"))
        .anyMatch(
            line -> line.matches("batch-1 +offline +best 25% +0/10 GiB +11 12 13 .2 .*GPU-1"));
  }

  @Test
  void lsOfNothingSaysSo() {
    assertThat(run("ls")).isZero();
    assertThat(out.toString(UTF_8)).contains("No virtual GPU");
  }

  @Test
  void lsAsJsonIsOneObject() throws Exception {
    List<GpuLease> leases = leases(Duration.ofSeconds(3), Duration.ZERO);
    when(pool.leases()).thenReturn(leases);
    assertThat(run("ls", "--json")).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toByteArray()).path("leases");
    assertThat(json).hasSize(2);
    assertThat(json.path(0).path("share_percent").asInt()).isEqualTo(50);
    assertThat(json.path(0).path("memory_used_bytes").asLong()).isEqualTo(100L << 20);
    assertThat(json.path(0).path("gpu_time_ns").asLong()).isEqualTo(3_000_000_000L);
    assertThat(json.path(1).path("share_percent").isNull()).isTrue();
    assertThat(json.path(1).path("owner_pid").asLong()).isEqualTo(ProcessHandle.current().pid());
  }

  @Test
  void topShowsWhatWasHeldInTheInterval() {
    threeLooks();
    assertThat(run("top", "--count", "2")).isZero();
    List<String> lines = out.toString(UTF_8).lines().toList();
    assertThat(lines).allMatch(line -> line.length() <= 80);
    assertThat(lines)
        .anyMatch(
            line ->
                line.matches("a-model-with[a-z-]*… +nearline +fixed 50% +50.0% +100MiB/1.5GiB .*"))
        .anyMatch(line -> line.matches("batch-1 +offline +best 25% +25.0% +0/10GiB +1 +12 +2"))
        .anyMatch(line -> line.matches("batch-1 +offline +best 25% +40.0% .*"))
        .anyMatch(line -> line.contains("75 % busy"));
    assertThat(out.toString(UTF_8)).doesNotContain("\u001b");
  }

  @Test
  void topAsJsonIsALineEachTime() throws Exception {
    threeLooks();
    assertThat(run("top", "--count=2", "--json", "--interval", "1s")).isZero();
    List<String> lines = out.toString(UTF_8).lines().toList();
    assertThat(lines).hasSize(2);
    JsonNode first = new ObjectMapper().readTree(lines.get(0));
    assertThat(first.path("interval_s").asDouble()).isEqualTo(1);
    assertThat(first.path("gpus").path(0).path("share_held_percent").asDouble()).isEqualTo(75);
    assertThat(first.path("leases").path(1).path("share_held_percent").asDouble()).isEqualTo(25);
  }

  @Test
  void topOnATerminalRedrawsInPlace() {
    console =
        Console.ofTerminal(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
    threeLooks();
    assertThat(run("top", "--count", "2")).isZero();
    assertThat(out.toString(UTF_8)).contains("\u001b[H", "\u001b[J", "\u001b[1mtenant");
    assertThat(out.toString(UTF_8).lines().filter(line -> line.contains("batch-1"))).hasSize(3);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--interval=1ms", "--interval=fast", "--count=0", "--count=x"})
  void badNumbersAreWrongUsage(String argument) {
    assertThat(run("top", argument)).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("vgpu top --help");
  }

  @ParameterizedTest
  @ValueSource(strings = {"ls", "top", "run", "serve"})
  void newCommandsHaveHelp(String command) {
    assertThat(run(command, "--help")).isZero();
    assertThat(out.toString(UTF_8)).contains("Usage: vgpu " + command, "Exit codes:");
  }

  private void threeLooks() {
    List<GpuLease> first = leases(Duration.ofSeconds(5), Duration.ofMillis(100));
    List<GpuLease> second = leases(Duration.ofMillis(5_500), Duration.ofMillis(350));
    List<GpuLease> third = leases(Duration.ofMillis(6_000), Duration.ofMillis(750));
    when(pool.leases()).thenReturn(first).thenReturn(second).thenReturn(third);
  }

  private int run(String... args) {
    return VgpuCommand.commandLine(
            new CliContext(console, Map.of(), options -> pool, new Fakes.SkippingClock()))
        .execute(args);
  }
}
