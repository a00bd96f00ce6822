package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The backend on directories that replace configfs and the cgroups. */
@Timeout(60)
class KmodBackendTest {
  @TempDir Path root;
  @TempDir Path leases;

  private final BlockingQueue<Integer> told = new LinkedBlockingQueue<>();
  private StandInMachine machine;
  private KmodBackend backend;

  @BeforeEach
  void machineWithTheModule() throws IOException {
    machine = new StandInMachine(root);
    backend = new KmodBackend(machine);
  }

  private Path put(String file, String text) throws IOException {
    Path path = root.resolve(file);
    Files.createDirectories(path.getParent());
    return Files.writeString(path, text, UTF_8);
  }

  private String tenant(String file) throws IOException {
    return machine.tenants().text("job-1", file);
  }

  private Path cgroup() {
    return root.resolve("sys/fs/cgroup/service/vgpu/job-1");
  }

  private static VirtualGpuRequest request(long mebibytes) {
    return VirtualGpuRequest.builder()
        .name("job")
        .policy(SharePolicy.BURST_SHARE)
        .computePercent(25)
        .memory(MemorySize.ofMebibytes(mebibytes))
        .preemptionClass(PreemptionClass.OFFLINE)
        .build();
  }

  private EnforcedLease prepare(Enforcement enforcement) {
    return enforcement.prepare("job-1", leases, new TestGpu(), request(64), new Told());
  }

  private void await(int processes) throws InterruptedException {
    for (Integer count = told.poll(30, TimeUnit.SECONDS);
        count == null || count != processes;
        count = told.poll(30, TimeUnit.SECONDS)) {
      assertThat(count).as("told within 30 s").isNotNull();
    }
  }

  @Test
  void leaseIsATenantWithACgroupOfItsOwn() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement)) {
      assertThat(tenant("limit")).isEqualTo(Long.toString(64L << 20));
      assertThat(tenant("weight")).isEqualTo("25");
      assertThat(tenant("class")).isEqualTo("offline");
      assertThat(tenant("cgroup")).isEqualTo(Files.getAttribute(cgroup(), "unix:ino").toString());
      machine.tenants().set("job-1", "used", "1048576");
      machine.tenants().set("job-1", "stats", "allocations 3\nrefused 2\n");
      assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofMebibytes(1));
      assertThat(lease.deniedAllocations()).isEqualTo(2);
      assertThat(lease.environment()).containsEntry(KmodBackend.CGROUP, cgroup().toString());
      assertThat(lease.impaired()).isEmpty();
    }
    assertThat(machine.tenants().exists("job-1")).isFalse();
  }

  @Test
  void usageBeyondAllMemoryIsStillAnAmount() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement)) {
      machine.tenants().set("job-1", "used", "18446744073709551615");
      machine.tenants().set("job-1", "stats", "refused 18446744073709551615\n");
      assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(Tenants.MOST));
      assertThat(lease.deniedAllocations()).isEqualTo(Tenants.MOST);
      assertThat(lease.tryResize(request(32), 250)).isFalse();
    }
  }

  @Test
  void resizeBelowWhatIsUsedChangesNothing() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement)) {
      machine.tenants().set("job-1", "used", Long.toString(48L << 20));
      assertThat(lease.tryResize(request(32), 250)).isFalse();
      assertThat(tenant("limit")).isEqualTo(Long.toString(64L << 20));
      assertThat(lease.tryResize(request(48), 250)).isTrue();
      assertThat(tenant("limit")).isEqualTo(Long.toString(48L << 20));
    }
  }

  @Test
  void tenantStaysWithoutQuotaUntilItsLastProcessEnds() throws Exception {
    try (Enforcement enforcement = backend.open(leases)) {
      EnforcedLease lease = prepare(enforcement);
      Path processes = Files.writeString(cgroup().resolve("cgroup.procs"), "4711\n");
      await(1);
      assertThat(lease.processes()).containsExactly(4711L);
      lease.close();
      assertThat(tenant("limit")).isEqualTo("0");
      assertThat(machine.tenants().exists("job-1")).isTrue();
      Files.writeString(processes, "");
      assertThat(machine.removed.poll(30, TimeUnit.SECONDS)).isEqualTo("job-1");
    }
  }

  @Test
  void processBelowTheLeasesCgroupKeepsItsTenant() throws Exception {
    try (Enforcement enforcement = backend.open(leases)) {
      EnforcedLease lease = prepare(enforcement);
      Path below = Files.createDirectories(cgroup().resolve("container"));
      Path processes = Files.writeString(below.resolve("cgroup.procs"), "4711\n");
      assertThat(lease.processes()).containsExactly(4711L);
      lease.close();
      assertThat(machine.tenants().exists("job-1")).isTrue();
      Files.writeString(processes, "");
      Files.writeString(cgroup().resolve("cgroup.events"), "populated 0\n");
      assertThat(machine.removed.poll(30, TimeUnit.SECONDS)).isEqualTo("job-1");
      assertThat(cgroup()).doesNotExist();
    }
  }

  @Test
  void processThatEntersAtTheEndKeepsItsTenant() throws Exception {
    try (Enforcement enforcement = backend.open(leases)) {
      EnforcedLease lease = prepare(enforcement);
      machine.entering = processes -> write(processes, "4711\n");
      lease.close();
      assertThat(tenant("limit")).isEqualTo("0");
      machine.entering = processes -> {};
      write(cgroup().resolve("cgroup.procs"), "");
      assertThat(machine.removed.poll(30, TimeUnit.SECONDS)).isEqualTo("job-1");
    }
  }

  private static void write(Path file, String text) {
    try {
      Files.writeString(file, text);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  @Test
  void tenantWhoseLastProcessHasJustEndedGoesWithTheSeat() throws Exception {
    CountDownLatch gone = new CountDownLatch(1);
    Enforcement enforcement = backend.open(leases);
    EnforcedLease lease =
        enforcement.prepare("job-1", leases, new TestGpu(), request(64), new Busy(gone));
    Path processes = Files.writeString(cgroup().resolve("cgroup.procs"), "4711\n");
    lease.close();
    Files.writeString(processes, "");
    enforcement.close();
    assertThat(machine.tenants().exists("job-1")).isFalse();
    gone.countDown();
  }

  @Test
  void launcherEntersTheCgroupAndBecomesTheProgram() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement)) {
      Path processes = Files.writeString(cgroup().resolve("cgroup.procs"), "");
      Process program = launched(lease, "echo", "a  b", "$HOME");
      assertThat(new String(program.getInputStream().readAllBytes(), UTF_8))
          .isEqualTo("a  b $HOME\n");
      assertThat(program.waitFor()).isZero();
      assertThat(processes).hasContent("0");
      Files.delete(processes);
      Files.createDirectory(processes); // cannot be written
      assertThat(launched(lease, "echo").waitFor()).isEqualTo(126);
      Files.delete(processes);
    }
  }

  private static Process launched(EnforcedLease lease, String... program) throws IOException {
    List<String> words = new ArrayList<>(lease.launcher());
    words.addAll(List.of(program));
    ProcessBuilder builder = new ProcessBuilder(words);
    builder.environment().putAll(lease.environment());
    return builder.start();
  }

  @Test
  void tenantWhoseSeatIsGoneGoesWithTheNextOne() throws Exception {
    Path processes;
    try (Enforcement enforcement = backend.open(leases)) {
      EnforcedLease lease = prepare(enforcement);
      processes = Files.writeString(cgroup().resolve("cgroup.procs"), "4711\n");
      lease.close();
    }
    backend.open(leases).close();
    assertThat(machine.tenants().exists("job-1")).isTrue(); // it still has a process
    Files.writeString(processes, "");
    backend.open(leases).close();
    assertThat(machine.tenants().exists("job-1")).isFalse();
  }

  @Test
  void tenantThatTheSeatDidNotLiveToRecordGoesWithTheLease() throws Exception {
    Path directory = Files.createDirectories(leases.resolve("leases/job-1"));
    try (Enforcement enforcement = backend.open(leases)) {
      enforcement.prepare("job-1", directory, new TestGpu(), request(64), new Told());
    }
    backend.open(leases).close();
    assertThat(machine.tenants().exists("job-1")).isTrue(); // the lease is there
    Files.delete(directory.resolve("kmod-cgroup"));
    Files.delete(directory); // it has ended without this backend
    Files.writeString(cgroup().resolve("cgroup.procs"), "4711\n");
    backend.open(leases).close();
    assertThat(machine.tenants().exists("job-1")).isTrue(); // it still has a process
    Files.writeString(cgroup().resolve("cgroup.procs"), "");
    backend.open(leases).close();
    assertThat(machine.tenants().exists("job-1")).isFalse();
    assertThat(cgroup()).doesNotExist();
    Files.createFile(leases.resolve("kmod/job-2")); // its writer was killed
    backend.open(leases).close();
    assertThat(leases.resolve("kmod")).isEmptyDirectory();
  }

  @Test
  void nextHolderOfTheSeatTakesOver() throws Exception {
    try (Enforcement enforcement = backend.open(leases)) {
      prepare(enforcement);
    }
    machine.tenants().set("job-1", "used", "4096");
    Files.writeString(cgroup().resolve("cgroup.procs"), "4711\n");
    put("proc/self/cgroup", "0::/other\n"); // another service
    try (Enforcement enforcement = backend.open(leases)) {
      EnforcedLease lease = prepare(enforcement);
      await(1);
      assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(4096));
      assertThat(lease.environment()).containsEntry(KmodBackend.CGROUP, cgroup().toString());
    }
  }

  @Test
  void tenantOfSomebodyElseIsLeftAlone() throws Exception {
    machine.tenants().make("job-1");
    machine.tenants().set("job-1", "limit", "5");
    try (Enforcement enforcement = backend.open(leases)) {
      assertThatThrownBy(() -> prepare(enforcement))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("rmdir");
      assertThatThrownBy(
              () -> enforcement.prepare("../up", leases, new TestGpu(), request(64), new Told()))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("id=../up");
    }
    assertThat(tenant("limit")).isEqualTo("5");
  }

  @Test
  void thisProcessMovesIntoTheCgroupAndBack() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement)) {
      Path into = Files.writeString(cgroup().resolve("cgroup.procs"), "");
      Path back = put("sys/fs/cgroup/service/cgroup.procs", "");
      var attachment = backend.attachThisProcess(lease.environment());
      assertThat(into).hasContent("0");
      put("proc/self/cgroup", "0::/service/vgpu/job-1\n");
      assertThatThrownBy(() -> backend.attachThisProcess(lease.environment()))
          .isInstanceOf(IllegalStateException.class);
      assertThatThrownBy(
              () ->
                  backend.attachThisProcess(
                      Map.of(KmodBackend.CGROUP, cgroup().resolveSibling("job-2").toString())))
          .isInstanceOf(VgpuException.class)
          .hasMessageContaining("one at a time");
      attachment.close();
      assertThat(back).hasContent("0");
      Files.writeString(into, "");
    }
  }

  @Test
  void processThatHasBegunWithCudaComesTooLate() throws Exception {
    Files.createSymbolicLink(root.resolve("proc/self/fd/9"), Path.of("/dev/nvidia-uvm"));
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement)) {
      assertThatThrownBy(() -> backend.attachThisProcess(lease.environment()))
          .isInstanceOf(IllegalStateException.class)
          .hasMessageContaining("before the first call");
    }
    assertThatThrownBy(() -> backend.attachThisProcess(Map.of()))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining(KmodBackend.CGROUP);
  }

  @Test
  void tellsWhyItCannotWork() throws Exception {
    assertThat(backend.status().isAvailable()).isTrue();
    Files.delete(machine.tenantDirectory());
    assertThat(why()).contains("mount -t configfs");
    put("sys/module/vgpu_kmod/version", "0.0.1\n");
    assertThat(why()).contains("found=0.0.1 needed=" + Machine.VERSION);
    Files.delete(root.resolve("sys/module/vgpu_kmod/version"));
    Files.delete(root.resolve("sys/module/vgpu_kmod"));
    assertThat(why()).contains("not loaded").doesNotContain("locked down");
    assertThat(backend.status().notes()).isEmpty();
    put("proc/self/status", "Seccomp:\t0\n");
    assertThat(backend.status().notes())
        .singleElement()
        .asString()
        .startsWith("other processes' open files can")
        .contains("(pidfd_getfd)");
    put("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    assertThat(why()).contains("locked down");
    Files.delete(root.resolve("sys/fs/cgroup/cgroup.controllers"));
    assertThat(why()).contains("cgroup v2");
    assertThatThrownBy(() -> backend.open(leases)).isInstanceOf(VgpuException.class);
  }

  private String why() {
    return backend.status().unavailableBecause().orElseThrow();
  }

  @Test
  void refusesWhatItCannotKeep() {
    var whole = request(64).toBuilder();
    assertThat(backend.unable(new TestGpu(), request(64))).isEmpty();
    assertThat(backend.unable(new TestGpu(), whole.policy(SharePolicy.FIXED_SHARE).build()))
        .get()
        .asString()
        .contains("BURST_SHARE");
    assertThat(
            backend.unable(
                new TestGpu(), whole.policy(SharePolicy.BURST_SHARE).gpuCount(2).build()))
        .get()
        .asString()
        .contains("one GPU");
  }

  @Test
  void serviceLoaderFindsIt() {
    assertThat(ServiceLoader.load(EnforcementBackend.class))
        .anyMatch(found -> found instanceof KmodBackend);
  }

  /** A listener that does not return until the seat is gone. */
  private record Busy(CountDownLatch gone) implements EnforcedLease.Listener {
    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void processes(int attached) {
      try {
        gone.await();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private final class Told implements EnforcedLease.Listener {
    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void processes(int attached) {
      told.add(attached);
    }
  }
}
