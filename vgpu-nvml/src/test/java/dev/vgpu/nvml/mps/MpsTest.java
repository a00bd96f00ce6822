package dev.vgpu.nvml.mps;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.ArgumentMatchers.anyInt;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import dev.vgpu.VgpuException;
import dev.vgpu.emulator.EmulatorDriver;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** MPS with a replacement of the vendor's tool, and real processes. */
@Timeout(60)
class MpsTest {
  private static final long NEVER_MS = 3_600_000;
  private static final MemorySize MEMORY = MemorySize.ofMebibytes(100);

  private final Path tool = new EmulatorDriver().mpsControl().orElseThrow();
  private final GpuId id = new GpuId("GPU-5f7a0c11-0000-4000-8000-000000000001");
  private final PhysicalGpu gpu = mock(PhysicalGpu.class);
  private final List<String> told = new CopyOnWriteArrayList<>();
  private final List<Process> programs = new ArrayList<>();
  private final List<EnforcedLease> leases = new ArrayList<>();
  private Path directory;
  private MpsDaemon daemon;
  private MpsGpu on;

  @BeforeEach
  void make() throws IOException {
    directory = Files.createTempDirectory("vg");
    when(gpu.id()).thenReturn(id);
    when(gpu.provider()).thenReturn("emulator");
    daemon = new MpsDaemon(new MpsTool(tool, 1_000), directory.resolve("mps"), id);
    on = new MpsGpu(daemon, 2, () -> {});
  }

  @AfterEach
  void endAll() throws IOException {
    programs.forEach(Process::destroyForcibly);
    daemon.stop();
    try (Stream<Path> files = Files.walk(directory)) {
      files.sorted((a, b) -> b.compareTo(a)).forEach(path -> path.toFile().delete());
    }
  }

  private static VirtualGpuRequest share(int percent) {
    return VirtualGpuRequest.builder()
        .memory(MEMORY)
        .policy(SharePolicy.FIXED_SHARE)
        .computePercent(percent)
        .build();
  }

  private static VirtualGpuRequest bestEffort() {
    return VirtualGpuRequest.builder().memory(MEMORY).build();
  }

  /** Stands for the hook's lease; its processes are those that the test starts. */
  private static EnforcedLease hooked(List<Long> pids) {
    EnforcedLease lease = mock(EnforcedLease.class);
    when(lease.environment()).thenReturn(Map.of("LD_PRELOAD", "/hook.so"));
    when(lease.visibleProcesses()).thenAnswer(asked -> List.copyOf(pids));
    when(lease.tryResize(any(), anyInt())).thenReturn(true);
    return lease;
  }

  private EnforcedLease.Listener listener(String name) {
    return new EnforcedLease.Listener() {
      @Override
      public void wanted() {}

      @Override
      public void drained() {}

      @Override
      public void processes(int attached) {}

      @Override
      public void disturbed(String reason) {
        told.add(name + ": " + reason);
      }
    };
  }

  private MpsLease lease(String name, VirtualGpuRequest request, List<Long> pids) {
    MpsLease made =
        on.add(name, () -> new MpsLease(name, on, hooked(pids), request, listener(name)));
    leases.add(made);
    return made;
  }

  /** A program that the tool counts as a client, by the directory in its environment. */
  private long program(MpsLease under) throws IOException {
    ProcessBuilder builder = new ProcessBuilder("sleep", "600");
    builder.environment().putAll(under.environment());
    builder.environment().remove("LD_PRELOAD");
    Process process = builder.start();
    programs.add(process);
    return process.pid();
  }

  private static void kill(String signal, long pid) throws IOException, InterruptedException {
    assertThat(new ProcessBuilder("sh", "-c", "kill -" + signal + " " + pid).start().waitFor())
        .isZero();
  }

  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
  }

  @Test
  void programsAreBoundedByShareQuotaAndClass() {
    MpsLease lease = lease("a-1", share(30), List.of());
    assertThat(lease.environment())
        .containsEntry("LD_PRELOAD", "/hook.so")
        .containsEntry("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "30")
        .containsEntry("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=100M")
        .containsEntry("CUDA_MPS_CLIENT_PRIORITY", "0")
        .containsKey("CUDA_MPS_PIPE_DIRECTORY")
        .containsKey("CUDA_MPS_LOG_DIRECTORY");
    VirtualGpuRequest smaller =
        share(20).toBuilder()
            .memory(MemorySize.ofBytes(1))
            .preemptionClass(PreemptionClass.OFFLINE)
            .build();
    assertThat(lease.tryResize(smaller, 200)).isTrue();
    assertThat(lease.environment())
        .containsEntry("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "20")
        .containsEntry("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=1M")
        .containsEntry("CUDA_MPS_CLIENT_PRIORITY", "1");
    assertThat(lease.tryResize(share(20).toBuilder().policy(SharePolicy.BURST_SHARE).build(), 200))
        .isFalse();
  }

  @Test
  void daemonRunsWhileALeaseStandsOnItAndIsFoundByTheNextSeat() {
    MpsLease lease = lease("a-1", share(30), List.of());
    long pid = daemon.process().orElseThrow().pid();
    MpsGpu next =
        new MpsGpu(new MpsDaemon(new MpsTool(tool), directory.resolve("mps"), id), 2, () -> {});
    EnforcedLease taken =
        next.add(
            "a-1", () -> new MpsLease("a-1", next, hooked(List.of()), share(30), listener("a-1")));
    assertThat(daemon.process().orElseThrow().pid()).isEqualTo(pid);
    assertThat(told).isEmpty();
    lease.close();
    verify(leaseBeneath(lease)).close();
    on.stopIfUnused();
    await(() -> !ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
    taken.close();
  }

  private static EnforcedLease leaseBeneath(MpsLease lease) {
    return lease.under();
  }

  @Test
  void endOfTheServerNamesThoseInItsReachAndStartsAnother() throws Exception {
    List<Long> pids = new CopyOnWriteArrayList<>();
    MpsLease reached = lease("a-1", share(30), pids);
    MpsLease idle = lease("b-2", share(30), List.of());
    assertThat(idle.id()).isEqualTo("b-2");
    pids.add(program(reached));
    daemon.startServer();
    long server = daemon.servers().get(0);
    on.supervise();
    assertThat(told).isEmpty();
    kill("KILL", server);
    await(() -> daemon.servers().isEmpty());
    on.supervise();
    assertThat(told)
        .singleElement()
        .asString()
        .startsWith("a-1: the MPS server ended")
        .contains("pid=" + server, "in its reach: [a-1]", id.value());
    assertThat(daemon.servers()).hasSize(1).doesNotContain(server);
    on.supervise();
    assertThat(told).hasSize(1);
  }

  @Test
  void daemonThatWasKilledIsStartedAnew() throws Exception {
    List<Long> pids = new CopyOnWriteArrayList<>();
    MpsLease lease = lease("a-1", share(30), pids);
    pids.add(program(lease));
    long first = daemon.process().orElseThrow().pid();
    kill("KILL", first);
    await(() -> !ProcessHandle.of(first).map(ProcessHandle::isAlive).orElse(false));
    on.supervise();
    assertThat(told).singleElement().asString().contains("was gone", "in its reach: [a-1]");
    long second = daemon.process().orElseThrow().pid();
    assertThat(second).isNotEqualTo(first);
    assertThat(daemon.servers()).isEmpty();
  }

  @Test
  void daemonThatHangsIsKilledAndStartedAnew() throws Exception {
    List<Long> pids = new CopyOnWriteArrayList<>();
    MpsLease lease = lease("a-1", share(30), pids);
    pids.add(program(lease));
    long first = daemon.process().orElseThrow().pid();
    kill("STOP", first);
    on.supervise();
    assertThat(told).singleElement().asString().contains("it hung", "in its reach: [a-1]");
    assertThat(daemon.process().orElseThrow().pid()).isNotEqualTo(first);
    await(() -> !ProcessHandle.of(first).map(ProcessHandle::isAlive).orElse(false));
  }

  /** Only as root: no other user can create another user's files. */
  @Test
  void daemonOfAnotherUserIsLeftAlone() throws Exception {
    MpsLease lease = lease("a-1", share(30), List.of());
    Path pipes = Path.of(lease.environment().get("CUDA_MPS_PIPE_DIRECTORY"));
    long theirs = daemon.process().orElseThrow().pid();
    if ((int) Files.getAttribute(pipes, "unix:uid") == 0) {
      Files.setAttribute(pipes, "unix:uid", 12_345);
      assertThatThrownBy(() -> lease("b-2", share(30), List.of()))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("is another user's")
          .hasMessageContaining("uid=12345");
      assertThat(ProcessHandle.of(theirs).map(ProcessHandle::isAlive)).contains(true);
      Files.setAttribute(pipes, "unix:uid", 0);
    }
  }

  /** The facts that MPS needs about the machine. */
  private final class TestMachine implements MpsEnforcement.Machine {
    @Override
    public MpsTool tool(PhysicalGpu asked) {
      return anyTool();
    }

    @Override
    public MpsTool anyTool() {
      return new MpsTool(tool, 1_000);
    }

    @Override
    public int mostClients(GpuId asked) {
      return 2;
    }
  }

  @Test
  void daemonThatAKilledSeatLeftIsStoppedByTheNextUnlessALeaseGoesOn() throws Exception {
    Path leaseOnDisk = Files.createDirectories(directory.resolve("leases")).resolve("a-1");
    Files.writeString(leaseOnDisk, "");
    MpsLease lost = lease("a-1", share(30), List.of()); // its seat is gone from here on
    assertThat(lost.id()).isEqualTo("a-1");
    long pid = daemon.process().orElseThrow().pid();
    MpsBackend backend = new MpsBackend(Map.of(), List.of(), directory, List::of);
    assertThat(backend.hasLeftovers(directory)).isTrue();
    Enforcement beneath = mock(Enforcement.class);
    new MpsEnforcement(directory, beneath, new TestMachine(), NEVER_MS).close();
    assertThat(daemon.process().orElseThrow().pid()).isEqualTo(pid);
    Files.delete(leaseOnDisk);
    new MpsEnforcement(directory, beneath, new TestMachine(), NEVER_MS).close();
    await(() -> !ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
    assertThat(backend.hasLeftovers(directory)).isFalse();
    assertThat(backend.hasLeftovers(directory.resolve("nowhere"))).isFalse();
  }

  @Test
  void aLeaseThatCannotBeRestoredEndsNoOthersPrograms() throws Exception {
    Path onDisk = Files.createDirectories(directory.resolve("leases"));
    for (String name : List.of("a-1", "b-2")) {
      Files.createDirectory(onDisk.resolve(name));
      assertThat(lease(name, share(30), List.of()).id()).isEqualTo(name);
    }
    long pid = daemon.process().orElseThrow().pid();
    MpsDaemon same = new MpsDaemon(new MpsTool(tool, 1_000), directory.resolve("mps"), id);
    MpsGpu next = new MpsGpu(same, 2, () -> {});
    assertThatThrownBy(
            () ->
                next.add(
                    "a-1",
                    () -> {
                      throw new VgpuException("its page is gone");
                    }))
        .hasMessageContaining("its page is gone");
    next.stopIfUnused();
    assertThat(daemon.process().orElseThrow().pid()).isEqualTo(pid);
    Files.delete(onDisk.resolve("b-2"));
    next.stopIfUnused();
    await(() -> !ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false));
  }

  @ParameterizedTest
  @ValueSource(strings = {"/no/such/tool", "/bin/false"})
  void aDaemonThatCannotBeAskedNowIsLeftAsItIs(String broken) {
    MpsLease lease = lease("a-1", share(30), List.of());
    assertThat(lease.id()).isEqualTo("a-1");
    long pid = daemon.process().orElseThrow().pid();
    MpsTool cannot = new MpsTool(Path.of(broken), 1_000);
    MpsDaemon unasked = new MpsDaemon(cannot, directory.resolve("mps"), id);
    assertThatThrownBy(unasked::ensure).isInstanceOf(VgpuException.class);
    assertThat(daemon.process().orElseThrow().pid()).isEqualTo(pid);
    assertThat(daemon.ensure()).isEmpty();
  }

  /** A busy machine may delay an answer by more than the limit. */
  @Test
  void aDaemonThatAnswersLateOnceIsLeftAsItIs() throws Exception {
    MpsLease lease = lease("a-1", share(30), List.of());
    assertThat(lease.id()).isEqualTo("a-1");
    long pid = daemon.process().orElseThrow().pid();
    Path slow = directory.resolve("slow");
    Path calls = directory.resolve("calls");
    Files.writeString(
        slow,
        String.format(
            Locale.ROOT,
            "#!/bin/sh%necho >> %s%n[ $(wc -l < %s) -gt 1 ] || exec sleep 60%nexec %s \"$@\"%n",
            calls,
            calls,
            tool));
    assertThat(slow.toFile().setExecutable(true)).isTrue();
    MpsTool late = new MpsTool(slow, 1_000);
    assertThat(new MpsDaemon(late, directory.resolve("mps"), id).ensure()).isEmpty();
    assertThat(Files.readAllLines(calls)).as("asked again").hasSizeGreaterThan(1);
    assertThat(daemon.process().orElseThrow().pid()).isEqualTo(pid);
  }

  @Test
  void moreClientsThanItServesAreRefused() {
    List<Long> pids = new CopyOnWriteArrayList<>(List.of(11L));
    MpsLease lease = lease("a-1", share(30), pids);
    lease.check(Path.of("/bin/true"));
    pids.add(12L);
    assertThatThrownBy(() -> lease.check(Path.of("/bin/true")))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("at most 2 processes");
    assertThat(on.lack(share(10))).hasValueSatisfying(lack -> assertThat(lack).contains("has 2"));
  }

  @ParameterizedTest
  @CsvSource({
    "6.1, 11.4, 16", // Pascal
    "6.1, 13.1, 16",
    "7.0, 12.4, 48", // Volta
    "9.0, 13.0, 48",
    "9.0, 13.1, 60",
    "12.0, 14.0, 60",
    "unheard of, '', 48"
  })
  void howManyClientsItServesGoesByGenerationAndDriver(String capability, String cuda, int most) {
    assertThat(MpsTerms.mostClients(Map.of("compute_capability", capability, "cuda_version", cuda)))
        .isEqualTo(most);
    assertThat(MpsTerms.mostClients(Map.of())).isEqualTo(48);
  }

  @Test
  void aGpuThatIsProhibitedIsAnObstacleWithARemedy() {
    assertThat(MpsTerms.obstacle(Map.of("compute_mode", "prohibited")).orElseThrow())
        .contains("prohibited", "nvidia-smi -c DEFAULT");
    assertThat(MpsTerms.obstacle(Map.of("compute_mode", "exclusive process"))).isEmpty();
    assertThat(MpsTerms.obstacle(Map.of())).isEmpty();
  }

  @Test
  void sharesAreNotHeldBesideBestEffort() {
    MpsLease lease = lease("a-1", share(30), List.of());
    assertThat(on.lack(share(70))).isEmpty();
    assertThat(on.lack(bestEffort()))
        .hasValueSatisfying(lack -> assertThat(lack).contains("[a-1]"));
    lease.close();
    assertThat(on.lack(bestEffort())).isEmpty();
    assertThat(MpsTerms.unable(share(5).toBuilder().policy(SharePolicy.BURST_SHARE).build()))
        .isPresent();
  }

  @Test
  void whatFailsBeneathLeavesNoDaemon() {
    Enforcement beneath = mock(Enforcement.class);
    when(beneath.prepare(any(), any(), any(), any(), any()))
        .thenThrow(new VgpuException("the quota is below what a context takes"));
    try (MpsEnforcement mps = new MpsEnforcement(directory, beneath, new TestMachine(), NEVER_MS)) {
      assertThatThrownBy(() -> mps.prepare("a-1", directory, gpu, share(5), listener("a-1")))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("context");
    }
    assertThat(daemon.process()).isEmpty();
  }

  @Test
  void aDaemonWhoseFirstCommandFailsIsStopped() throws IOException {
    Path refuses = directory.resolve("refuses");
    Files.writeString(
        refuses,
        "#!/bin/sh\n[ \"$1\" != -d ] || exec "
            + tool
            + " -d\nread -r line\ncase $line in set_*) exit 1 ;; esac\necho $line | exec "
            + tool
            + "\n");
    assertThat(refuses.toFile().setExecutable(true)).isTrue();
    MpsDaemon refused = new MpsDaemon(new MpsTool(refuses, 5_000), directory.resolve("mps"), id);
    MpsGpu one = new MpsGpu(refused, 2, () -> {});
    assertThatThrownBy(
            () ->
                one.add(
                    "a-1",
                    () -> {
                      throw new IllegalStateException("it is not there");
                    }))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("set_default_active_thread_percentage");
    assertThat(daemon.process()).isEmpty();
  }

  @Test
  void aToolThatAnotherUserCanChangeIsNotRun() throws IOException {
    Path open = Files.createDirectory(directory.resolve("open"));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rwxrwxrwx"));
    Map<String, String> untrusted = Map.of("VGPU_MPS_CONTROL", open.resolve("tool").toString());
    assertThatThrownBy(() -> MpsTool.find(untrusted))
        .hasMessageContainingAll("VGPU_MPS_CONTROL", "every user can write");
  }

  @Test
  void whyItIsNotThereIsSaidWithARemedy() throws IOException {
    MpsBackend none =
        new MpsBackend(
            Map.of("PATH", directory.toString()), List.of(), directory.resolve("no"), List::of);
    if (MpsTool.find(Map.of("PATH", "")).isEmpty()) {
      assertThat(none.status().unavailableBecause().orElseThrow()).contains("VGPU_MPS_CONTROL");
    }
    MpsBackend named =
        new MpsBackend(
            Map.of("VGPU_MPS_CONTROL", "/no/such/tool"),
            List.of(),
            directory.resolve("no"),
            List::of);
    assertThat(named.obstacle(gpu).orElseThrow()).contains("/no/such/tool cannot be executed");
    Path another = Files.createDirectory(directory.resolve("usual"));
    Path control = Files.createFile(another.resolve("control"));
    MpsBackend brought = new MpsBackend(Map.of(), List.of(new EmulatorDriver()), another, List::of);
    assertThat(brought.status().isAvailable()).isTrue();
    assertThat(brought.obstacle(gpu)).isEmpty(); // it is this user's
    if ((int) Files.getAttribute(control, "unix:uid") == 0) {
      Files.setAttribute(control, "unix:uid", 12_345);
      assertThat(brought.obstacle(gpu).orElseThrow())
          .contains("another user already runs MPS", "uid=12345");
    }
  }
}
