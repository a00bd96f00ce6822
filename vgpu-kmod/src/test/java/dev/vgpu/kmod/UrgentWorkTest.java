package dev.vgpu.kmod;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** What the module is told of the leases' work, by their classes. */
@Timeout(60)
class UrgentWorkTest {
  private static final String HOLD = "online " + UrgentWork.MOST_MS;

  @TempDir Path root;
  @TempDir Path leases;

  private StandInMachine machine;
  private KmodBackend backend;

  @BeforeEach
  void machineWithTheModule() throws IOException {
    machine = new StandInMachine(root);
    backend = new KmodBackend(machine);
  }

  private static VirtualGpuRequest request(PreemptionClass preemptionClass) {
    return VirtualGpuRequest.builder()
        .name("job")
        .policy(SharePolicy.BURST_SHARE)
        .computePercent(25)
        .memory(MemorySize.ofMebibytes(64))
        .preemptionClass(preemptionClass)
        .build();
  }

  private EnforcedLease prepare(Enforcement enforcement, String id, PreemptionClass of)
      throws IOException {
    Path directory = Files.createDirectories(leases.resolve(id));
    return enforcement.prepare(id, directory, new TestGpu(), request(of), new Silent());
  }

  private Path processes(String id, String text) throws IOException {
    Path file = root.resolve("sys/fs/cgroup/service/vgpu").resolve(id).resolve("cgroup.procs");
    return Files.writeString(file, text);
  }

  private void objects(String id, int count) throws IOException {
    machine.tenants().set(id, "stats", "refused 0\nobjects " + count + "\n");
  }

  private void await(String message) throws InterruptedException {
    String said = machine.said.poll(30, TimeUnit.SECONDS);
    while (said != null && !said.equals(message)) {
      said = machine.said.poll(30, TimeUnit.SECONDS);
    }
    assertThat(said).isEqualTo(message);
  }

  @ParameterizedTest
  @EnumSource(
      value = PreemptionClass.class,
      names = {"ONLINE", "NEARLINE"})
  void offlineLeasesAreStoppedWhileAnUrgentOneUsesTheGpu(PreemptionClass urgent) throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement, "job-1", urgent)) {
      processes("job-1", "4711\n");
      objects("job-1", 3);
      await(HOLD);
      await(HOLD); // renewed
      objects("job-1", 0);
      await("online 0");
      objects("job-1", 1);
      await(HOLD);
      lease.finishing(true); // suspended
      await("online 0");
      lease.finishing(false);
      await(HOLD);
      processes("job-1", "");
      await("online 0");
    }
    await("close");
  }

  @Test
  void offlineWorkStopsNobody() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease lease = prepare(enforcement, "job-1", PreemptionClass.OFFLINE)) {
      processes("job-1", "4711\n");
      objects("job-1", 3);
      lease.finishing(false); // looks again
      processes("job-1", "");
    }
    assertThat(machine.said).containsExactly("open", "close");
  }

  /** An idle server must not stop offline work for hours, unless that is wanted. */
  @Test
  void nobodyIsStoppedUnlessTheEnvironmentSaysSo() throws Exception {
    machine.stopsOffline = false;
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease online = prepare(enforcement, "job-1", PreemptionClass.ONLINE);
        EnforcedLease offline = prepare(enforcement, "job-2", PreemptionClass.OFFLINE)) {
      processes("job-1", "4711\n");
      processes("job-2", "4712\n");
      objects("job-1", 3);
      online.finishing(false); // looks again
      assertThat(offline.preemptionReason()).get().asString().contains(Machine.STOP_OFFLINE);
      processes("job-1", "");
      processes("job-2", "");
    }
    assertThat(machine.said).containsExactly("open", "close");
  }

  @Test
  void leaseThatBecomesOfflineOrEndsStopsNobody() throws Exception {
    try (Enforcement enforcement = backend.open(leases)) {
      EnforcedLease lease = prepare(enforcement, "job-1", PreemptionClass.ONLINE);
      processes("job-1", "4711\n");
      objects("job-1", 3);
      await(HOLD);
      assertThat(lease.tryResize(request(PreemptionClass.OFFLINE), 250)).isTrue();
      await("online 0");
      assertThat(lease.tryResize(request(PreemptionClass.ONLINE), 250)).isTrue();
      await(HOLD);
      lease.close(); // its process stays
      await("online 0");
    }
  }

  @Test
  void deviceOfAnotherSchedulerIsTriedAgainAndNamed() throws Exception {
    machine.busy = true;
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease online = prepare(enforcement, "job-1", PreemptionClass.ONLINE);
        EnforcedLease offline = prepare(enforcement, "job-2", PreemptionClass.OFFLINE)) {
      processes("job-1", "4711\n");
      processes("job-2", "4712\n");
      objects("job-1", 3);
      await("busy");
      await("busy");
      assertThat(offline.preemptionReason()).get().asString().contains("/dev/vgpu", "busy");
      assertThat(online.preemptionReason()).isEmpty();
      machine.busy = false;
      await(HOLD);
      await(HOLD);
      assertThat(offline.preemptionReason()).isEmpty();
      processes("job-1", "");
      processes("job-2", "");
    }
  }

  /** Each renewal has the module try again, so the reason goes away by itself. */
  @Test
  void stopThatTheDriverRefusesIsNamed() throws Exception {
    try (Enforcement enforcement = backend.open(leases);
        EnforcedLease online = prepare(enforcement, "job-1", PreemptionClass.ONLINE);
        EnforcedLease offline = prepare(enforcement, "job-2", PreemptionClass.OFFLINE)) {
      processes("job-1", "4711\n");
      processes("job-2", "4712\n");
      objects("job-1", 3);
      await(HOLD);
      assertThat(offline.preemptionReason()).isEmpty();
      machine.tenants().set("job-2", "stats", "objects 4\nunstopped 5\nresisting 2\n");
      assertThat(offline.preemptionReason()).get().asString().contains("refuses", "groups=2");
      assertThat(online.preemptionReason()).isEmpty();
      await(HOLD);
      machine.tenants().set("job-2", "stats", "objects 4\nunstopped 5\nresisting 0\n");
      assertThat(offline.preemptionReason()).isEmpty();
      processes("job-1", "");
      processes("job-2", "");
    }
  }

  private record Silent() implements EnforcedLease.Listener {
    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void processes(int attached) {}
  }
}
