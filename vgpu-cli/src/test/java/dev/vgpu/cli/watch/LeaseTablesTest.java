package dev.vgpu.cli.watch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.text.EventTexts;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.SharingMode;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The tables of {@code ls} and {@code top}. */
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
        .anyMatch(line -> line.matches("a-model-with-a-long-name-1 +nearline +- +fixed 50% .*"))
        .anyMatch(line -> line.contains("100 MiB/1.5 GiB") && line.contains("(java)"))
        .anyMatch(
            line ->
                line.matches(
                    "batch-1 +offline +between-kernels +best 25% +0/10 GiB +11 12 13 .2 .*GPU-1"));
  }

  @ParameterizedTest
  @ValueSource(ints = {60, 80, 100, 110, 130})
  void lsFitsATerminalAndLeavesOutWhatIsLeastMissed(int columns) {
    PrintStream stream = new PrintStream(out, true, UTF_8);
    console = Console.ofTerminal(stream, stream, columns);
    GpuLease rest = Fakes.lease(REST, Duration.ZERO, MemorySize.ZERO);
    GpuId uuid = new GpuId("GPU-5ea64b3e-6a9f-4c3e-9d1c-4a1f8f1a2b3c");
    Fakes.Lease of = (Fakes.Lease) rest;
    List<GpuLease> leases =
        List.of(
            new Fakes.Lease("a-model-with-a-long-name-1", uuid, FIXED, of.pid(), of.usage()), rest);
    when(pool.leases()).thenReturn(leases);
    assertThat(run("ls")).isZero();
    String told = out.toString(UTF_8);
    int width = Math.max(80, columns);
    assertThat(told.lines()).hasSize(3).allMatch(line -> line.length() <= width);
    assertThat(told).contains("/1.5 GiB", "between-kernels", "name-1");
    assertThat(told.contains("GPU-5e") && told.contains("2b3c")).isEqualTo(columns >= 110);
    assertThat(told.contains("(java)")).isEqualTo(columns == 130);
  }

  @Test
  void lsIntoAPipeTellsAll() {
    List<GpuLease> leases = leases(Duration.ZERO, Duration.ZERO);
    when(pool.leases()).thenReturn(leases);
    assertThat(run("ls")).isZero();
    assertThat(out.toString(UTF_8)).contains("owner", "device", "11 12 13 +2", "(java)", "GPU-1");
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
    assertThat(json.path(0).path("preemption").isNull()).isTrue();
    assertThat(json.path(1).path("preemption").asText()).isEqualTo("between-kernels");
    assertThat(json.path(1).path("preemption_reason").asText()).contains("refused");
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
            line -> line.matches("a-model-[a-z-]*… +nearline +fixed 50% +50.0% +100MiB/1.5GiB .*"))
        .anyMatch(
            line -> line.matches("batch-1 +offline +best 25% +25.0% +0/10GiB +1 +12 +2 +1.25"))
        .anyMatch(line -> line.matches("batch-1 +offline +best 25% +40.0% .*"))
        .anyMatch(line -> line.contains("75 % busy"))
        .anyMatch(line -> line.startsWith("  batch-1 is not stopped inside kernels: the driver"));
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
  void topSaysHowAGpuIsSharedAndWhatHappened() throws Exception {
    List<GpuState> first = List.of(Fakes.state(100));
    List<GpuState> second = List.of(Fakes.state(350));
    when(pool.states()).thenReturn(first).thenReturn(second);
    Instant at = Instant.ofEpochSecond(1_800_000_000L);
    GpuEvent old = new GpuEvent.Leaked(at, "old-1");
    GpuEvent preempted = new GpuEvent.Preempted(at, "batch-1", "a-model-with-a-long-name-1", 0, 7);
    GpuEvent denied = new GpuEvent.AllocationDenied(at, "batch-1", 3, "its quota of 10GiB");
    when(pool.recentEvents()).thenReturn(List.of(old)).thenReturn(List.of(old, preempted, denied));
    threeLooks();
    assertThat(run("top", "--count", "1")).isZero();
    assertThat(out.toString(UTF_8).lines())
        .contains(
            "  strict batch-1, turns of 2.5 ms, 250 a second",
            "  because a-model-with-a-long-name-1 is at its fixed share; offline tenants get",
            "    the rest")
        .anyMatch(line -> line.equals("  memory 3 GiB free, reclaimed below 1 GiB up to 2 GiB"))
        .anyMatch(line -> line.matches("a-model-.* 50.0%[*] .*"))
        .anyMatch(
            line -> line.contains("batch-1 preempted by a-model-with-a-long-name-1 (7 times)"))
        .anyMatch(line -> line.contains("batch-1 3 allocations denied: its quota of 10GiB"))
        .noneMatch(line -> line.contains("old-1"));
    out.reset();
    threeLooks();
    when(pool.states()).thenReturn(first).thenReturn(second);
    when(pool.recentEvents()).thenReturn(List.of()).thenReturn(List.of(preempted));
    assertThat(run("top", "--count", "1", "--json")).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    JsonNode gpu = json.path("gpus").path(0);
    assertThat(gpu.path("sharing").asText()).isEqualTo("strict");
    assertThat(gpu.path("switches_per_s").asDouble()).isEqualTo(250);
    assertThat(gpu.path("held_back").path(0).asText()).isEqualTo("a-model-with-a-long-name-1");
    assertThat(json.path("leases").path(0).path("held_back").asBoolean()).isTrue();
    assertThat(json.path("leases").path(1).path("slowdown").asDouble()).isEqualTo(1.25);
    assertThat(json.path("events").path(0).path("kind").asText()).isEqualTo("Preempted");
    assertThat(json.path("events").path(0).path("by").asText()).startsWith("a-model");
  }

  @Test
  void everyKindOfEventHasALine() {
    Instant at = Instant.ofEpochSecond(1_800_000_000L);
    MemorySize size = MemorySize.ofMebibytes(10);
    List<GpuEvent> events =
        List.of(
            new GpuEvent.Acquired(at, "a-1", new GpuId("GPU-1"), REST),
            new GpuEvent.Refused(at, "a", REST, "why"),
            new GpuEvent.Resized(at, "a-1", REST, REST),
            new GpuEvent.CancelFailed(at, "a-1", "why"),
            new GpuEvent.SuspectReport(at, "a-1", "why"),
            new GpuEvent.Disturbed(at, "a-1", "why"),
            new GpuEvent.SharingChanged(at, "", new GpuId("GPU-1"), SharingMode.STRICT, "why"),
            new GpuEvent.MeteringFailed(at, "", "why"),
            new GpuEvent.ReclaimAsked(at, "a-1", size, "why"),
            new GpuEvent.Suspended(at, "a-1", size, "why"),
            new GpuEvent.Resumed(at, "a-1", "why"),
            new GpuEvent.EndedByReclaim(at, "a-1", List.of(3L), "why"),
            new GpuEvent.HeldBack(at, "a", "why"),
            new GpuEvent.Leaked(at, "a-1"));
    assertThat(events.stream().map(event -> EventTexts.line(event).substring(10)))
        .containsExactly(
            "a-1 acquired, offline",
            "a refused: why",
            "a-1 resized",
            "a-1 cancel failed: why",
            "a-1 suspect report: why",
            "a-1 disturbed: why",
            "sharing is strict: why",
            "metering failed: why",
            "a-1 asked for 10 MiB: why",
            "a-1 suspended, 10 MiB: why",
            "a-1 resumed: why",
            "a-1 ended by reclaim: pids [3]: why",
            "a held back: why",
            "a-1 leaked");
    assertThat(events)
        .allSatisfy(event -> assertThat(EventTexts.json(event).path("kind").asText()).isNotEmpty());
  }

  @Test
  void topOnATerminalRedrawsInPlace() {
    console =
        Console.ofTerminal(new PrintStream(out, true, UTF_8), new PrintStream(err, true, UTF_8));
    threeLooks();
    assertThat(run("top", "--count", "2")).isZero();
    assertThat(out.toString(UTF_8)).contains("\u001b[H", "\u001b[J", "\u001b[1mtenant");
    assertThat(out.toString(UTF_8).lines().filter(line -> line.matches(".*batch-1 +offline.*")))
        .hasSize(3);
  }

  @ParameterizedTest
  @ValueSource(strings = {"--interval=1ms", "--interval=fast", "--count=0", "--count=x"})
  void badNumbersAreWrongUsage(String argument) {
    assertThat(run("top", argument)).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("vgpu top --help");
  }

  @ParameterizedTest
  @ValueSource(strings = {"ls", "top", "usage", "run", "serve"})
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
    return Fakes.commandLine(
            new CliContext(console, Map.of(), options -> pool, new Fakes.SkippingClock()))
        .execute(args);
  }
}
