package dev.vgpu.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What {@code doctor} reports of GPUs and backends; HostChecksTest covers the machine. */
class DoctorCommandTest {
  private static final GpuId GPU = new GpuId("GPU-1");
  private static final Capabilities SOME =
      Capabilities.builder().memory(Capabilities.Memory.EXACT).build();

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final GpuPool pool = Fakes.pool();

  @BeforeEach
  void describe() {
    BackendStatus hook =
        BackendStatus.ofAvailable("cuda-hook", SOME)
            .withNotes(List.of("preemption inside kernels: off with driver 612.34.01"));
    when(pool.backends()).thenReturn(List.of(hook));
    List<BackendChoice> choices =
        List.of(
            choice("cuda-hook", BackendChoice.Verdict.CHOSEN, "meets the demands"),
            choice("mps", BackendChoice.Verdict.NOT_NOW, "the GPU is shared in turns"),
            choice("mig", BackendChoice.Verdict.IMPOSSIBLE, "MIG mode is off: vgpu mig enable"));
    when(pool.explain(any())).thenReturn(choices);
  }

  private static BackendChoice choice(String backend, BackendChoice.Verdict verdict, String why) {
    BackendChoice choice = mock(BackendChoice.class);
    when(choice.gpu()).thenReturn(GPU);
    when(choice.backend()).thenReturn(backend);
    when(choice.verdict()).thenReturn(verdict);
    when(choice.reason()).thenReturn(why);
    return choice;
  }

  private void modes(Map<String, String> properties) {
    GpuReading reading = mock(GpuReading.class);
    when(reading.gpu()).thenReturn(GPU);
    when(reading.health()).thenReturn(GpuHealth.HEALTHY);
    when(reading.properties()).thenReturn(properties);
    when(pool.readings()).thenReturn(List.of(reading));
  }

  private int run(String... args) {
    return Fakes.commandLine(
            new CliContext(
                Fakes.console(out, err), Map.of(), options -> pool, new Fakes.SkippingClock()))
        .execute(args);
  }

  private String text() {
    assertThat(run("doctor")).isZero();
    return unwrapped();
  }

  /** Joins wrapped lines: a continuation line is indented by an odd number of blanks. */
  private String unwrapped() {
    return out.toString(UTF_8).replaceAll("\n(?:  )* (?! )", " ");
  }

  @ParameterizedTest
  @CsvSource({
    "persistence_mode, off, persistence mode is off, nvidia-smi -pm 1",
    "compute_mode, exclusive process, programs cannot share it but through MPS, nvidia-smi -c",
    "compute_mode, prohibited, no program may run on it, nvidia-smi -c DEFAULT",
  })
  void modesOfAGpuAreSaidWithTheirRemedies(String name, String value, String found, String then) {
    modes(Map.of(name, value));
    assertThat(text().lines()).anyMatch(line -> line.contains(found) && line.contains(then));
  }

  /** The remedy is part of the backend's own reason, which MigBackendTest checks. */
  @ParameterizedTest
  @CsvSource({
    "off, off, '    MIG mode is off'",
    "on, on, '    MIG mode is on'",
    "off, on, '    MIG mode is off, and is to be on when nothing uses the GPU, or it is reset'",
  })
  void theMigModeIsSaidAsTheDriverTellsIt(String mode, String pending, String line)
      throws Exception {
    modes(
        mode.equals(pending)
            ? Map.of("mig_mode", mode)
            : Map.of("mig_mode", mode, "mig_pending", pending));
    assertThat(text().lines().filter(each -> each.contains("MIG mode is") && !each.contains(":")))
        .containsExactly(line);
    out.reset();
    assertThat(run("doctor", "--json")).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    assertThat(json.at("/gpus/0/properties/mig_mode").asText()).isEqualTo(mode);
  }

  @Test
  void aGpuWithoutMemoryOfItsOwnIsSaidToShareTheHosts() {
    modes(Map.of("memory", "the host's"));
    assertThat(text().lines())
        .anyMatch(
            line ->
                line.contains("its memory is the host's") && line.contains("any program may take"));
  }

  @Test
  void theDriversVersionIsSaidOnceAndWithoutOneNothingIs() throws Exception {
    modes(Map.of("driver_version", "580.65.06"));
    assertThat(text().lines().filter(line -> line.startsWith("    driver ")))
        .containsExactly("    driver 580.65.06");
    out.reset();
    assertThat(run("doctor", "--json")).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    assertThat(json.at("/gpus/0/properties/driver_version").asText()).isEqualTo("580.65.06");
    out.reset();
    modes(Map.of());
    assertThat(text().lines()).noneMatch(line -> line.startsWith("    driver "));
  }

  @Test
  void whatIsInOrderNeedsNoRemedy() {
    modes(Map.of("persistence_mode", "on", "compute_mode", "default"));
    assertThat(text()).doesNotContain("nvidia-smi", "compute mode");
  }

  @Test
  void eachBackendIsAvailableOrTheReasonIsSaid() throws Exception {
    assertThat(text())
        .contains(
            "cuda-hook: available",
            "mps: not now: the GPU is shared in turns",
            "mig: no: MIG mode is off: vgpu mig enable",
            "preemption inside kernels: off with driver 612.34.01");
    out.reset();
    assertThat(run("doctor", "--json")).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    JsonNode backends = json.path("gpus").path(0).path("backends");
    assertThat(backends.findValuesAsText("available")).containsExactly("true", "false", "false");
    assertThat(backends.path(2).path("reason").asText()).contains("vgpu mig enable");
  }

  @Test
  void callsThatTheHookLetThroughAreCounted() throws Exception {
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().name("a").memory(MemorySize.ofMebibytes(1)).build();
    GpuLease lease = mock(GpuLease.class);
    GpuLease of = Fakes.lease(request, Duration.ZERO, MemorySize.ZERO);
    when(lease.id()).thenReturn("a-1");
    when(lease.request()).thenReturn(request);
    when(lease.gpus()).thenReturn(List.of(of.gpu()));
    when(lease.passedThrough()).thenReturn(41L);
    when(pool.leases()).thenReturn(List.of(lease, lease));
    assertThat(text()).contains("82 calls of driver functions that the hook does not know");
    out.reset();
    assertThat(run("doctor", "--json")).isZero();
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    assertThat(json.path("calls_passed_through").asLong()).isEqualTo(82);
  }

  @Test
  void noLineIsLongerThanATerminalIsWide() {
    modes(Map.of("persistence_mode", "off", "compute_mode", "exclusive process"));
    String told = text();
    assertThat(out.toString(UTF_8).lines()).allMatch(line -> line.length() <= Lines.WIDTH);
    assertThat(told).contains("waits until the driver has begun; as root: nvidia-smi -pm 1");
  }

  @ParameterizedTest
  @CsvSource({"LOST, 1", "DEGRADED, 0"})
  void whatIsWrongWithAGpuIsSaidAndALostOneIsAProblem(GpuHealth health, int exitCode)
      throws Exception {
    GpuReading reading = mock(GpuReading.class);
    when(reading.gpu()).thenReturn(GPU);
    when(reading.health()).thenReturn(health);
    when(reading.healthReason()).thenReturn("it fell off the bus");
    when(pool.readings()).thenReturn(List.of(reading));
    String trouble = health.name().toLowerCase(Locale.ROOT) + ": it fell off the bus";
    assertThat(run("doctor")).isEqualTo(exitCode);
    assertThat(out.toString(UTF_8)).contains("    " + trouble);
    out.reset();
    assertThat(run("doctor", "--json")).isEqualTo(exitCode);
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    assertThat(json.at("/gpus/0/trouble").asText()).isEqualTo(trouble);
    assertThat(json.path("problems")).hasSize(exitCode);
  }

  @Test
  void gpusThatNoBackendCanEverShareAreAProblem() {
    List<BackendChoice> choices =
        List.of(choice("mig", BackendChoice.Verdict.IMPOSSIBLE, "only root may"));
    when(pool.explain(any())).thenReturn(choices);
    assertThat(run("doctor")).isEqualTo(1);
    assertThat(out.toString(UTF_8)).contains("no backend can share a GPU that is here");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "note | a GPU is left out: index=1: GPU is lost (NVML error 15) | nvidia-smi --gpu-reset",
        "reason | none of the driver's GPUs can be used: lost (NVML error 15) | the kernel's log",
        "reason | the driver has no GPU: file=libnvidia-ml.so.1 | libnvidia-ml.so.1",
        "reason | nvmlInit_v2 failed: mismatch (NVML error 18) | have different versions",
      })
  void aGpuThatTheDriverListsAndNoPoolShowsIsAProblem(String where, String said, String remedy)
      throws Exception {
    BackendStatus nvml =
        where.equals("note")
            ? BackendStatus.ofAvailable("nvml").withNotes(List.of(said))
            : BackendStatus.ofUnavailable("nvml", said);
    List<BackendStatus> backends = List.of(nvml, BackendStatus.ofAvailable("cuda-hook", SOME));
    when(pool.backends()).thenReturn(backends);
    assertThat(run("doctor")).isEqualTo(1);
    assertThat(unwrapped()).contains("Missing: " + said, remedy).doesNotContain("Everything");
    out.reset();
    assertThat(run("doctor", "--json")).isEqualTo(1);
    JsonNode json = new ObjectMapper().readTree(out.toByteArray());
    assertThat(json.path("ok").asBoolean()).isFalse();
    assertThat(json.path("problems")).hasSize(1);
  }

  @Test
  void aMachineWhoseDriverIsNotLoadedMayHaveNoGpu() {
    List<BackendStatus> backends =
        List.of(
            BackendStatus.ofUnavailable("nvml", "nvmlInit_v2 failed: not loaded (NVML error 9)"),
            BackendStatus.ofAvailable("in-process", SOME));
    when(pool.backends()).thenReturn(backends);
    assertThat(run("doctor")).isZero();
  }

  /** Some backends serve no quota below a CUDA context, and some only fixed shares. */
  @ParameterizedTest
  @CsvSource({"15GiB, 1GiB", "512MiB, 512MiB", "0B, 1GiB"})
  void backendsAreJudgedByWhatAProgramWouldAskFor(String usable, String quota) {
    PhysicalGpu gpu = Fakes.gpu("GPU-1");
    when(gpu.usableMemory()).thenReturn(MemorySize.fromString(usable));
    when(pool.gpus()).thenReturn(List.of(gpu));
    when(pool.explain(any()))
        .thenAnswer(
            call -> {
              VirtualGpuRequest asked = call.getArgument(0);
              assertThat(asked.memory()).isEqualTo(MemorySize.fromString(quota));
              boolean isFixed = asked.policy() == SharePolicy.FIXED_SHARE;
              return List.of(
                  isFixed
                      ? choice("kmod", BackendChoice.Verdict.IMPOSSIBLE, "no fixed share")
                      : choice("kmod", BackendChoice.Verdict.CHOSEN, ""),
                  isFixed
                      ? choice("green-contexts", BackendChoice.Verdict.POSSIBLE, "")
                      : choice("green-contexts", BackendChoice.Verdict.IMPOSSIBLE, "FIXED_SHARE"));
            });
    assertThat(text()).contains("    kmod: available", "    green-contexts: available");
  }

  @Test
  void withoutAGpuOnlyCallsInAJvmHaveWhatTheyNeed() {
    PhysicalGpu host = Fakes.gpu("host");
    when(pool.gpus()).thenReturn(List.of(host));
    assertThat(text()).contains("for calls in a JVM; programs need a GPU, and there is none");
  }

  @Test
  void theExitCodesAreInTheHelp() {
    assertThat(run("doctor", "--help")).isZero();
    assertThat(out.toString(UTF_8)).contains("Exit codes: 0 everything needed is there, 1");
    assertThat(run("doctor", "--no-such-option")).isEqualTo(2);
  }
}
