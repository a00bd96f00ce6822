package dev.vgpu.cli.run;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.never;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.mockito.ArgumentCaptor;

class RunCommandTest {
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final GpuPool pool = Fakes.pool();
  private final VirtualGpu virtualGpu = mock(VirtualGpu.class);
  private CliContext.Pools pools = options -> pool;

  @Test
  void programIsStartedAsAskedAndEverythingIsClosed() throws Exception {
    starts(7);
    assertThat(run("--memory", "4GiB", "--compute", "50", "--", "sh", "-c", "exit 7")).isEqualTo(7);
    VirtualGpuRequest request = acquired();
    assertThat(request.name()).isEqualTo("sh");
    assertThat(request.memory()).isEqualTo(MemorySize.ofGibibytes(4));
    assertThat(request.computePercent()).hasValue(50);
    assertThat(request.policy()).isEqualTo(SharePolicy.FIXED_SHARE);
    assertThat(request.preemptionClass()).isEqualTo(PreemptionClass.NEARLINE);
    assertThat(request.requires().worksFor()).containsExactly(Capabilities.Scope.PROCESS);
    assertThat(startedCommand()).containsExactly("sh", "-c", "exit 7");
    verify(virtualGpu).close();
    verify(pool).close();
  }

  @Test
  void everyTermIsPassedOn() throws Exception {
    starts(0);
    assertThat(
            run(
                "--gpu=0",
                "--memory=512MiB",
                "--compute=30",
                "--policy=burst",
                "--class=offline",
                "--name=batch",
                "--on-failure=open",
                "true"))
        .isZero();
    VirtualGpuRequest request = acquired();
    assertThat(request.gpu()).hasValueSatisfying(id -> assertThat(id.value()).isEqualTo("GPU-1"));
    assertThat(request.policy()).isEqualTo(SharePolicy.BURST_SHARE);
    assertThat(request.preemptionClass()).isEqualTo(PreemptionClass.OFFLINE);
    assertThat(request.name()).isEqualTo("batch");
    assertThat(request.failureMode()).isEqualTo(FailureMode.OPEN);
  }

  @Test
  void demandsArePassedOn() throws Exception {
    starts(0);
    assertThat(
            run(
                "--memory=1GiB",
                "--require=compute:spatial,faults:isolated",
                "--require=for:container",
                "--require=preemption:inside-kernel",
                "true"))
        .isZero();
    Capabilities demanded = acquired().requires();
    assertThat(demanded.memory()).isEqualTo(Capabilities.Memory.EXACT);
    assertThat(demanded.compute()).isEqualTo(Capabilities.Compute.SPATIAL);
    assertThat(demanded.preemption()).isEqualTo(Capabilities.Preemption.INSIDE_KERNEL);
    assertThat(demanded.faultIsolation()).isEqualTo(Capabilities.FaultIsolation.ISOLATED);
    assertThat(demanded.worksFor())
        .containsExactlyInAnyOrder(Capabilities.Scope.PROCESS, Capabilities.Scope.CONTAINER);
  }

  @Test
  void namedBackendNeedsNoTurns() throws Exception {
    starts(0);
    assertThat(run("--memory=1GiB", "--backend=kmod", "true")).isZero();
    VirtualGpuRequest request = acquired();
    assertThat(request.backend()).hasValue("kmod");
    assertThat(request.requires().compute()).isEqualTo(Capabilities.Compute.NONE);
    assertThat(request.requires().memory()).isEqualTo(Capabilities.Memory.EXACT);
    assertThat(request.requires().worksFor()).containsExactly(Capabilities.Scope.PROCESS);
    assertThat(run("--memory=1GiB", "--backend=a b", "true")).isEqualTo(2);
  }

  @Test
  void namedPartNeedsNoTurnsAndIsPassedOn() throws Exception {
    starts(0);
    assertThat(run("--memory=1GiB", "--part=3g.40gb:4", "--gpu=0", "true")).isZero();
    VirtualGpuRequest request = acquired();
    assertThat(request.part()).contains("3g.40gb:4");
    assertThat(request.gpu()).isPresent();
    assertThat(request.backend()).isEmpty();
    assertThat(request.requires().compute()).isEqualTo(Capabilities.Compute.NONE);
    assertThat(run("--memory=1GiB", "--part=3g.40gb:", "true")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("not a part of a GPU: '3g.40gb:'");
    assertThat(run("--memory=1GiB", "--part=3g.40gb", "--gpus=2", "true")).isEqualTo(2);
  }

  /** A pool's answer for a backend. */
  private record Choice(
      GpuId gpu,
      String backend,
      Verdict verdict,
      String reason,
      int cost,
      Optional<Capabilities> capabilities)
      implements BackendChoice {}

  private void explains(BackendChoice.Verdict verdict) {
    Capabilities turns =
        Capabilities.builder()
            .compute(Capabilities.Compute.TURNS)
            .worksFor(Capabilities.Scope.THIS_JVM)
            .build();
    when(pool.explain(any()))
        .thenReturn(
            List.of(
                new Choice(
                    new GpuId("GPU-1"),
                    "in-process",
                    BackendChoice.Verdict.IMPOSSIBLE,
                    "lacks worksFor PROCESS",
                    0,
                    Optional.of(turns)),
                new Choice(new GpuId("GPU-1"), "hook", verdict, "does it", 100, Optional.empty())));
  }

  @Test
  void aReasonThatIsLongGoesOnInTheNextLine() {
    String reason = "the GPU's compute mode is prohibited: as root: nvidia-smi -c DEFAULT -i GPU-1";
    when(pool.explain(any()))
        .thenReturn(
            List.of(
                new Choice(
                    new GpuId("GPU-1"),
                    "cuda-hook",
                    BackendChoice.Verdict.IMPOSSIBLE,
                    reason,
                    0,
                    Optional.empty())));
    run("--memory=1GiB", "--explain");
    assertThat(out.toString(UTF_8).lines())
        .hasSize(3)
        .contains("  no         cuda-hook: the GPU's compute mode is prohibited: as root:")
        .allMatch(line -> line.length() <= Lines.WIDTH);
  }

  @Test
  void explanationIsPrintedAndNothingIsRun() {
    explains(BackendChoice.Verdict.CHOSEN);
    assertThat(run("--memory=1GiB", "--explain")).isZero();
    assertThat(out.toString(UTF_8).lines())
        .containsExactly(
            "GPU-1",
            "  no         in-process: lacks worksFor PROCESS",
            "  chosen     hook: does it");
    verify(pool, never()).acquire(any());
  }

  @Test
  void explanationIsDataAsWell() {
    explains(BackendChoice.Verdict.NOT_NOW);
    assertThat(run("--memory=1GiB", "--explain", "--json", "true")).isEqualTo(75);
    assertThat(out.toString(UTF_8))
        .contains("\"served\" : false", "\"verdict\" : \"not-now\"", "\"compute:turns\"");
  }

  /** As without --explain. */
  @ParameterizedTest
  @CsvSource({
    "NOT_NOW, --memory=1GiB, 75",
    "POSSIBLE, --memory=1GiB, 75",
    "IMPOSSIBLE, --memory=1GiB, 69",
    "POSSIBLE, --memory=1GiB --gpus=2, 2",
    "IMPOSSIBLE, --memory=16GiB, 2",
  })
  void explanationSaysByItsExitCodeWhyNot(
      BackendChoice.Verdict verdict, String options, int exitCode) {
    explains(verdict);
    assertThat(run((options + " --explain").split(" "))).isEqualTo(exitCode);
  }

  @Test
  void explanationForAGpuThatIsNotThereIsWrongUsage() {
    assertThat(run("--memory=1GiB", "--gpu=7", "--explain")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("no such GPU", "vgpu devices");
  }

  @Test
  void backendThatIsNotInstalledIsWrongUsage() {
    explains(BackendChoice.Verdict.IMPOSSIBLE);
    assertThat(run("--memory=1GiB", "--backend=nope", "true")).isEqualTo(2);
    assertThat(run("--memory=1GiB", "--backend=nope", "--explain")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("no such backend: nope (one of in-process, hook)");
    verify(pool, never()).acquire(any());
  }

  @ParameterizedTest
  @ValueSource(strings = {"fixed", "fixed-share", "FIXED_SHARE"})
  void policiesHaveTheNamesOfTheLibraryToo(String policy) throws Exception {
    starts(0);
    assertThat(run("--memory=1GiB", "--compute=30", "--policy=" + policy, "true")).isZero();
    assertThat(acquired().policy()).isEqualTo(SharePolicy.FIXED_SHARE);
  }

  @Test
  void withoutAShareItIsBestEffort() throws Exception {
    starts(0);
    assertThat(run("--memory", "1GiB", "true")).isZero();
    assertThat(acquired().policy()).isEqualTo(SharePolicy.BEST_EFFORT);
  }

  @Test
  void optionsBehindTheProgramAreItsOwn() throws Exception {
    starts(0);
    assertThat(run("--memory", "1GiB", "echo", "--memory", "x", "--help")).isZero();
    assertThat(startedCommand()).containsExactly("echo", "--memory", "x", "--help");
  }

  @ParameterizedTest
  @CsvSource({
    "--memory 1GiB, Missing required parameter",
    "true, '--memory=SIZE'",
    "--memory 4 true, not a memory size",
    "--memory 0B true, a memory quota is 0",
    "--memory 1GiB --compute 0 true, --compute is not within 1 to 100: 0",
    "--memory 1GiB --gpus 0 true, --gpus is not within 1 to 16: 0",
    "--memory 1GiB --json true, --json belongs to --explain",
    "--memory 1GiB --policy fixed true, the compute share is not set",
    "--memory 1GiB --policy best-effort --compute 5 true, best effort promises no share",
    "--memory 1GiB --policy half true, 'one of best-effort, fixed, burst'",
    "--memory 1GiB --class idle true, 'one of online, nearline, offline'",
    "--memory 1GiB --on-failure cry true, 'one of refuse, open'",
    "--memory 1GiB --wait soon true, not a duration",
    "--memory 1GiB --require speed true, not a demand: 'speed'",
    "--memory 1GiB --require memory:huge true, 'one of none, soft, exact'",
    "--memory 1GiB --name -x true, invalid tenant name"
  })
  void mistakesInTheArgumentsAreWrongUsage(String arguments, String message) {
    assertThat(run(arguments.split(" "))).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains(message);
    verify(pool, never()).acquire(any());
  }

  @ParameterizedTest
  @CsvSource({
    "no-such-program, 127, there is no program no-such-program",
    "/no/such/program, 127, there is no program /no/such/program",
    "/etc/passwd, 126, /etc/passwd may not be executed",
    "/etc, 126, /etc is a directory"
  })
  void programThatIsNotThereTakesNothing(String program, int exitCode, String message) {
    assertThat(run("--memory", "1GiB", "--", program)).isEqualTo(exitCode);
    assertThat(err.toString(UTF_8)).contains(message);
    verify(pool, never()).acquire(any());
  }

  @Test
  void quotaThatDoesNotFitNowIsATemporaryFailure() {
    when(pool.acquire(any())).thenThrow(new GpuCapacityException("it does not fit", List.of()));
    assertThat(run("--memory", "1GiB", "true")).isEqualTo(75);
    assertThat(err.toString(UTF_8)).isEqualToIgnoringNewLines("vgpu: it does not fit");
  }

  @Test
  void quotaThatCouldNeverFitIsWrongUsage() {
    when(pool.acquire(any())).thenThrow(new IllegalArgumentException("more than any GPU has"));
    assertThat(run("--memory", "1GiB", "true")).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("more than any GPU has");
  }

  @Test
  void waitsUntilItFits() throws Exception {
    when(virtualGpu.start(any())).thenAnswer(call -> started(call.getArgument(0)));
    when(pool.tryAcquire(any(), any())).thenReturn(Optional.of(virtualGpu));
    assertThat(run("--memory", "1GiB", "--wait", "2m", "true")).isZero();
    verify(pool).tryAcquire(any(), org.mockito.ArgumentMatchers.eq(Duration.ofMinutes(2)));
  }

  @Test
  void waitingInVainIsATemporaryFailure() throws Exception {
    when(pool.tryAcquire(any(), any())).thenReturn(Optional.empty());
    assertThat(run("--memory", "1GiB", "--wait", "20ms", "true")).isEqualTo(75);
    assertThat(err.toString(UTF_8)).contains("did not fit within 20 ms");
  }

  @Test
  void withoutABackendItIsUnavailable() {
    when(pool.acquire(any())).thenThrow(new VgpuException("no backend can"));
    assertThat(run("--memory", "1GiB", "true")).isEqualTo(69);
    pools =
        options -> {
          throw new VgpuException("the run directory is not writable");
        };
    assertThat(run("--memory", "1GiB", "true")).isEqualTo(69);
    assertThat(err.toString(UTF_8)).contains("no backend can", "not writable");
  }

  @Test
  void programThatCannotBeUnderAVirtualGpuSaysWhyAndTheLeaseIsGivenBack() throws Exception {
    when(pool.acquire(any())).thenReturn(virtualGpu);
    when(virtualGpu.start(any())).thenThrow(new VgpuException("it is statically linked"));
    assertThat(run("--memory", "1GiB", "true")).isEqualTo(126);
    assertThat(err.toString(UTF_8)).contains("statically linked");
    verify(virtualGpu).close();
  }

  @ParameterizedTest
  @CsvSource({"/bin/sh, sh", "/x/my program+1, my-program-1", "/x/_y, program_y", "/, program"})
  void programGivesItsName(String file, String name) {
    assertThat(RunCommand.nameOf(Path.of(file))).isEqualTo(name);
  }

  private void starts(int exitCode) throws IOException {
    when(pool.acquire(any())).thenReturn(virtualGpu);
    when(virtualGpu.start(any()))
        .thenAnswer(call -> new ProcessBuilder("sh", "-c", "exit " + exitCode).start());
  }

  private static Process started(ProcessBuilder program) throws IOException {
    return new ProcessBuilder(program.command()).start();
  }

  private VirtualGpuRequest acquired() {
    ArgumentCaptor<VirtualGpuRequest> request = ArgumentCaptor.forClass(VirtualGpuRequest.class);
    verify(pool).acquire(request.capture());
    return request.getValue();
  }

  private List<String> startedCommand() throws IOException {
    ArgumentCaptor<ProcessBuilder> program = ArgumentCaptor.forClass(ProcessBuilder.class);
    verify(virtualGpu).start(program.capture());
    return program.getValue().command();
  }

  private int run(String... args) {
    String[] all = new String[args.length + 1];
    all[0] = "run";
    System.arraycopy(args, 0, all, 1, args.length);
    Map<String, String> environment = Map.of("PATH", "/usr/bin:/bin");
    return Fakes.commandLine(
            new CliContext(Fakes.console(out, err), environment, pools, new Fakes.SkippingClock()))
        .execute(all);
  }
}
