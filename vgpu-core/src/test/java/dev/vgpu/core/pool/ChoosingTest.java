package dev.vgpu.core.pool;

import static dev.vgpu.backend.BackendChoice.Verdict.CHOSEN;
import static dev.vgpu.backend.BackendChoice.Verdict.IMPOSSIBLE;
import static dev.vgpu.backend.BackendChoice.Verdict.NOT_NOW;
import static dev.vgpu.backend.BackendChoice.Verdict.POSSIBLE;
import static dev.vgpu.request.PreemptionClass.NEARLINE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(30)
class ChoosingTest {
  private final FakeBackend hook = new FakeBackend();
  private final StagedBackend space = new StagedBackend();
  private final List<GpuPool> open = new ArrayList<>();
  private List<? extends PhysicalGpu> gpus = Pools.gpus(1);
  private Path directory;

  /** A GPU that cannot be used as a whole. */
  private record Divided(GpuId id) implements PhysicalGpu {
    @Override
    public String model() {
      return "test";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofMebibytes(1000);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }

    @Override
    public String provider() {
      return "test";
    }

    @Override
    public Optional<String> unusableAsWhole() {
      return Optional.of("it is divided");
    }
  }

  @BeforeEach
  void makeDirectory() throws IOException {
    directory = Files.createTempDirectory("vg");
  }

  @AfterEach
  void closeAll() throws IOException {
    open.forEach(GpuPool::close);
    Pools.delete(directory);
  }

  private GpuPool open() {
    NodeRegistry registry = new NodeRegistry(Map.of(), () -> List.of(space, hook));
    GpuPool pool =
        registry.openPool(
            GpuPoolOptions.builder().runDirectory(directory).gpus(List.copyOf(gpus)).build(),
            new Discovery(List.of()),
            NanoClock.SYSTEM);
    open.add(pool);
    return pool;
  }

  private static VirtualGpuRequest.Builder request() {
    return Pools.request(NEARLINE);
  }

  private static VirtualGpuRequest inSpace() {
    return request().require(Capabilities.Compute.SPATIAL).build();
  }

  private static VirtualGpuRequest exact() {
    return request().require(Capabilities.Memory.EXACT).require(Capabilities.Scope.PROCESS).build();
  }

  private static Optional<String> backendOf(GpuPool pool, VirtualGpu gpu) {
    return pool.leases().stream()
        .filter(lease -> lease.id().equals(gpu.id()))
        .findFirst()
        .flatMap(GpuLease::backend);
  }

  private static BackendChoice choice(List<BackendChoice> all, String backend) {
    return all.stream().filter(each -> each.backend().equals(backend)).findFirst().orElseThrow();
  }

  @Test
  void cheapestThatDoesWhatIsDemandedIsChosen() {
    GpuPool pool = open();
    assertThat(backendOf(pool, pool.acquire(request().build()))).isEmpty();
    assertThat(backendOf(pool, pool.acquire(exact()))).contains("fake");
    assertThat(space.prepared).isEmpty();
    assertThat(hook.opened).isZero(); // not needed before the first program
  }

  @Test
  void onlyTheNamedBackendServesEvenIfItCostsMore() {
    GpuPool pool = open();
    GpuPool client = open();
    VirtualGpuRequest staged = request().backend("staged").build();
    List<BackendChoice> all = client.explain(staged);
    assertThat(choice(all, "staged").verdict()).isEqualTo(CHOSEN);
    assertThat(choice(all, "fake").verdict()).isEqualTo(IMPOSSIBLE);
    assertThat(choice(all, "in-process").reason()).isEqualTo("is not the named backend, staged");
    VirtualGpu gpu = client.acquire(staged);
    assertThat(backendOf(pool, gpu)).contains("staged");
    assertThatThrownBy(() -> gpu.resize(request().backend("fake").build()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("a resize keeps the GPUs, the name, the backend");
    assertThatThrownBy(() -> client.acquire(request().backend("none").build()))
        .isInstanceOf(VgpuException.class)
        .isNotInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("fake is not the named backend, none");
  }

  @Test
  void programsOfALeaseThatNamesTurnsInThisJvmAreRefused() {
    VirtualGpu gpu = open().acquire(request().backend("in-process").build());
    assertThatThrownBy(() -> gpu.start(new ProcessBuilder("true")))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("chosen=in-process");
  }

  @Test
  void launcherStandsBeforeTheProgramsOwnCommand() throws Exception {
    hook.launcher = List.of("/bin/sh", "-c", "echo \"$VGPU_LEASE\"; exec \"$@\"", "launcher");
    try (VirtualGpu gpu = open().acquire(exact())) {
      ProcessBuilder program = new ProcessBuilder("echo", "a  b");
      for (int i = 0; i < 2; i++) { // the builder can be used again
        Process process = gpu.start(program);
        assertThat(process.inputReader().lines()).containsExactly(gpu.id(), "a  b");
      }
      assertThat(program.command()).containsExactly("echo", "a  b");
      assertThatThrownBy(() -> gpu.start(new ProcessBuilder("no-such-program")))
          .isInstanceOf(IOException.class)
          .hasMessageContaining("no-such-program");
    }
  }

  @Test
  void explanationSaysForEachWhyOrWhyNot() {
    List<BackendChoice> all = open().explain(exact());
    assertThat(all).map(BackendChoice::backend).containsExactly("in-process", "fake", "staged");
    assertThat(choice(all, "in-process").verdict()).isEqualTo(IMPOSSIBLE);
    assertThat(choice(all, "in-process").reason())
        .contains("memory EXACT (has SOFT)", "worksFor PROCESS");
    assertThat(choice(all, "fake").verdict()).isEqualTo(CHOSEN);
    assertThat(choice(all, "fake").capabilities()).contains(FakeBackend.CAPABILITIES);
    assertThat(choice(all, "staged").verdict()).isEqualTo(POSSIBLE);
    assertThat(choice(all, "staged").reason()).contains("another backend costs less");
    assertThat(choice(all, "staged").cost()).isEqualTo(300);
  }

  @Test
  void explanationChangesNothingAndIsTheSameInAnotherProcess() {
    GpuPool holder = open();
    GpuPool client = open();
    assertThat(client.explain(exact()))
        .usingRecursiveComparison()
        .isEqualTo(holder.explain(exact()));
    assertThat(holder.leases()).isEmpty();
  }

  @Test
  void explanationTellsGpusApart() {
    gpus = Pools.gpus(2);
    GpuPool pool = open();
    VirtualGpu taken =
        pool.acquire(request().memory(MemorySize.ofMebibytes(950)).gpu(gpus.get(0).id()).build());
    List<BackendChoice> all = pool.explain(exact());
    assertThat(all.subList(0, 3)).allMatch(each -> each.gpu().equals(taken.gpu().id()));
    assertThat(all.get(1).verdict()).isEqualTo(NOT_NOW);
    assertThat(all.get(1).reason()).contains("memory=100MiB");
    assertThat(all.get(4).verdict()).isEqualTo(CHOSEN);
    List<BackendChoice> large =
        pool.explain(request().memory(MemorySize.ofMebibytes(1001)).build());
    assertThat(large).allMatch(each -> each.verdict() == IMPOSSIBLE);
  }

  @Test
  void whatIsSetAsideIsPreparedWhenGrantedAndTakesNoTurns() throws Exception {
    GpuPool pool = open();
    VirtualGpu gpu = pool.acquire(inSpace());
    assertThat(backendOf(pool, gpu)).contains("staged");
    assertThat(space.prepared).containsExactly(gpu.id());
    FakeBackend.FakeLease lease = hook.leases.get(gpu.id());
    assertThat(lease.open).isTrue();
    assertThat(gpu.environment()).containsEntry("PART", "7").containsEntry("VGPU_LEASE", gpu.id());
    assertThat(gpu.capabilities().compute()).isEqualTo(Capabilities.Compute.SPATIAL);
    lease.attach(7);
    lease.want();
    lease.begin();
    VirtualGpu other = pool.acquire(inSpace());
    assertThat(hook.leases.get(other.id()).open).isTrue();
    lease.end(5_000);
    assertThat(lease.open).isTrue();
    assertThat(gpu.usage().gpuTime()).isEqualTo(Duration.ofNanos(5_000));
    gpu.close();
    assertThat(lease.revoked).isFalse(); // a process is still under it
    lease.exit(7);
    Pools.await(() -> !Files.exists(directory.resolve("leases").resolve(gpu.id())));
    assertThat(lease.revoked).isTrue();
  }

  @Test
  void gpuIsSharedInTurnsOrInSpace() throws Exception {
    GpuPool pool = open();
    VirtualGpu inTurns = pool.acquire(exact());
    assertThat(choice(pool.explain(inSpace()), "staged").verdict()).isEqualTo(NOT_NOW);
    assertThatThrownBy(() -> pool.acquire(inSpace()))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("the GPU is shared in turns")
        .hasMessageContaining(inTurns.id());
    inTurns.close();
    VirtualGpu gpu = pool.tryAcquire(inSpace(), Duration.ofSeconds(20)).orElseThrow();
    assertThatThrownBy(() -> pool.acquire(request().require(Capabilities.Scope.THIS_JVM).build()))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("the GPU is shared in space");
    // A request without demands that only turns meet is served in space too.
    assertThat(backendOf(pool, pool.acquire(request().build()))).contains("staged");
    gpu.close();
  }

  @Test
  void dividedGpuRunsNothingAsAWhole() {
    gpus = List.of(new Divided(Pools.gpus(1).get(0).id()));
    GpuPool holder = open();
    GpuPool client = open();
    assertThat(client.gpus().get(0).unusableAsWhole()).contains("it is divided");
    List<BackendChoice> all = client.explain(request().build());
    assertThat(choice(all, "in-process").reason()).isEqualTo("it is divided");
    assertThat(choice(all, "fake").reason()).isEqualTo("it is divided");
    assertThat(backendOf(holder, client.acquire(request().build()))).contains("staged");
    space.obstacle = Optional.of("not root; run the seat as root");
    assertThatThrownBy(() -> client.acquire(request().build()))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("not root");
  }

  @Test
  void onlyABackendThatMakesPartsServesARequestForOne() {
    GpuPool holder = open();
    GpuPool client = open();
    GpuId gpu = gpus.get(0).id();
    VirtualGpuRequest asked = request().part("3g.40gb:4").failureMode(FailureMode.OPEN).build();
    assertThat(client.parts(gpu)).isEmpty();
    assertThat(client.explain(asked))
        .allMatch(each -> each.verdict() == IMPOSSIBLE)
        .allMatch(each -> each.reason().equals("makes no parts of a GPU, such as 3g.40gb:4"));
    assertThatThrownBy(() -> client.acquire(asked))
        .isInstanceOf(VgpuException.class)
        .isNotInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("fake makes no parts of a GPU, such as 3g.40gb:4");
    GpuPart part = new GpuPart("3g.40gb", 4, 4, 3, MemorySize.ofMebibytes(500), 60);
    space.parts = List.of(part);
    assertThat(client.parts(gpu)).containsExactly(part);
    assertThat(choice(client.explain(asked), "in-process").verdict()).isEqualTo(IMPOSSIBLE);
    assertThat(choice(client.explain(asked), "fake").verdict()).isEqualTo(IMPOSSIBLE);
    VirtualGpu granted = client.acquire(asked);
    assertThat(backendOf(holder, granted)).contains("staged");
    assertThat(holder.leases().get(0).request().part()).contains("3g.40gb:4");
    assertThatThrownBy(() -> granted.resize(request().part("3g.40gb:0").build()))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("a resize keeps the GPUs, the name, the backend, the part");
    assertThatThrownBy(() -> client.parts(new GpuId("none")))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessage("no such GPU: gpu=none");
  }

  @Test
  void whatNoBackendCouldEverServeIsRefusedAndWhatLacksRoomWaits() {
    GpuPool pool = open();
    space.lack = Optional.of("no part is free");
    assertThatThrownBy(() -> pool.acquire(inSpace()))
        .isInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("no part is free");
    space.unable = Optional.of("no part is that large");
    assertThatThrownBy(() -> pool.acquire(inSpace()))
        .isInstanceOf(VgpuException.class)
        .isNotInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("no part is that large");
  }

  @Test
  void whatTheBackendBeneathCouldNeverServeIsRefused() {
    GpuPool pool = open();
    hook.unable = Optional.of("no program could start");
    assertThatThrownBy(() -> pool.acquire(inSpace()))
        .isInstanceOf(VgpuException.class)
        .isNotInstanceOf(GpuCapacityException.class)
        .hasMessageContaining("staged no program could start");
  }

  @Test
  void whatCannotBePreparedLeavesNothingBehind() throws IOException {
    GpuPool pool = open();
    space.failing = true;
    assertThatThrownBy(() -> pool.acquire(inSpace()))
        .isInstanceOf(VgpuException.class)
        .hasMessage("the device said no");
    assertThat(pool.leases()).isEmpty();
    try (Stream<Path> files = Files.list(directory.resolve("leases"))) {
      assertThat(files.filter(Files::isDirectory)).isEmpty();
    }
    space.failing = false;
    assertThat(pool.acquire(inSpace()).id()).isNotEmpty();
  }

  @Test
  void choiceSurvivesTheSeatsHolder() throws Exception {
    GpuPool holder = open();
    GpuPool client = open();
    VirtualGpu gpu = client.acquire(inSpace());
    hook.leases.get(gpu.id()).attach(7);
    holder.close();
    Pools.await(() -> space.prepared.size() == 2);
    assertThat(backendOf(client, gpu)).contains("staged");
    assertThat(space.prepared).containsExactly(gpu.id(), gpu.id());
    FakeBackend.FakeLease taken = hook.leases.get(gpu.id());
    assertThat(taken.open).isTrue();
    assertThat(choice(client.explain(exact()), "fake").verdict()).isEqualTo(NOT_NOW);
    taken.exit(7);
  }

  @Test
  void choiceThatWasNotPreparedSurvivesAsWell() {
    space.whenGranted = false;
    GpuPool holder = open();
    GpuPool client = open();
    VirtualGpu gpu = client.acquire(inSpace());
    assertThat(space.prepared).isEmpty();
    holder.close();
    assertThat(backendOf(client, gpu)).contains("staged");
    assertThat(gpu.environment()).containsEntry("PART", "7");
    assertThat(hook.leases.get(gpu.id()).open).isTrue();
  }

  @Test
  void suspendedInSpaceIsShutUntilItGoesOn() {
    GpuPool pool = open();
    VirtualGpu gpu = pool.acquire(inSpace());
    FakeBackend.FakeLease lease = hook.leases.get(gpu.id());
    gpu.suspend(Duration.ofSeconds(20));
    assertThat(lease.open).isFalse();
    gpu.resume(Duration.ofSeconds(20));
    assertThat(lease.open).isTrue();
  }

  @Test
  void failureModeOpenTakesWhatLacksLeast() {
    GpuPool pool = open();
    VirtualGpuRequest vm =
        request()
            .require(Capabilities.Scope.VM)
            .require(Capabilities.Memory.EXACT)
            .failureMode(FailureMode.OPEN)
            .build();
    assertThat(choice(pool.explain(vm), "fake").verdict()).isEqualTo(CHOSEN);
    assertThat(choice(pool.explain(vm), "fake").reason()).contains("worksFor VM", "accepted under");
    assertThat(backendOf(pool, pool.acquire(vm))).contains("fake");
  }
}
