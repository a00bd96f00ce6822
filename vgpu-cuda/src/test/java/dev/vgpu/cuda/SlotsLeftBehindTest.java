package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Live processes that have left a lease without notice to the seat. */
class SlotsLeftBehindTest {
  @TempDir private Path run;
  private final BlockingQueue<Integer> counts = new LinkedBlockingQueue<>();
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private Enforcement seat;

  private final class Listener implements EnforcedLease.Listener {
    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void processes(int attached) {
      counts.add(attached);
    }
  }

  @BeforeEach
  void openSeat() throws IOException {
    Files.createFile(run.resolve("hook.so"));
    seat = seat();
  }

  private Enforcement seat() {
    Map<String, String> environment =
        Map.of("VGPU_HOOK", run.resolve("hook.so").toString(), "VGPU_CONTEXT_MEMORY", "65536");
    Enforcement opened = new CudaHookBackend(environment).open(run);
    toClose.add(opened);
    return opened;
  }

  @AfterEach
  void closeAll() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
  }

  private EnforcedLease prepare() throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases/a"));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(64)).build();
    return seat.prepare("a", directory, TestGpu.named("GPU-1"), request, new Listener());
  }

  private FakeHook attach(long pid) throws IOException {
    FakeHook hook = FakeHook.attach(run, "a", pid);
    toClose.add(hook);
    return hook;
  }

  /** A process that maps a file with the name of another lease's page. */
  private Process processUnderAnotherLease() throws Exception {
    Path page = Files.createDirectories(run.resolve("leases/b")).resolve("report");
    // By a process of its own: a program cannot be run while it is open for writing, and a child
    // that another thread starts at that moment inherits this process's open files.
    Process copy = new ProcessBuilder("cp", "/bin/sleep", page.toString()).start();
    assertThat(copy.waitFor()).isZero();
    Process process = new ProcessBuilder(page.toString(), "1000").start();
    toClose.add(process::destroyForcibly);
    return process;
  }

  private void awaitCount(int wanted) throws InterruptedException {
    Integer count = counts.poll(20, TimeUnit.SECONDS);
    while (count != null && count != wanted) {
      count = counts.poll(20, TimeUnit.SECONDS);
    }
    assertThat(count).isEqualTo(wanted);
  }

  @Test
  void whoHasAnotherLeasesPageHasLeftThisOne() throws Exception {
    EnforcedLease lease = prepare();
    FakeHook hook = attach(processUnderAnotherLease().pid());
    awaitCount(1);
    assertThat(hook.charge(5)).isTrue();
    hook.close();
    awaitCount(0);
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void whoHasLeftWhileThereWasNoSeatIsFoundOut() throws Exception {
    prepare();
    FakeHook hook = attach(processUnderAnotherLease().pid());
    awaitCount(1);
    assertThat(hook.charge(5)).isTrue();
    seat.close();
    hook.close();
    seat = seat();
    EnforcedLease lease = prepare();
    for (int i = 0; i < 20_000 && !lease.memoryUsed().equals(MemorySize.ZERO); i++) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
    assertThat(lease.processes()).isEmpty();
  }

  @Test
  void whoHasAnotherSlotHereHasLeftThisOne() throws Exception {
    EnforcedLease lease = prepare();
    FakeHook left = attach(ProcessHandle.current().pid());
    FakeHook there = attach(ProcessHandle.current().pid());
    awaitCount(2);
    assertThat(left.charge(5)).isTrue();
    assertThat(there.charge(7)).isTrue();
    left.close();
    awaitCount(1);
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(7 * 256));
    assertThat(there.channel.isOpen()).isTrue();
  }

  @Test
  void aContainersProcessIsNotTakenForOneOfTheSameNumberHere() throws Exception {
    EnforcedLease lease = prepare();
    long pid = ProcessHandle.current().pid();
    FakeHook ignored = attach(pid);
    assertThat(lease.hasProcessesBesides(pid)).isFalse();
    toClose.add(FakeHook.attach(run, "a", pid, 7));
    assertThat(lease.hasProcessesBesides(pid)).isTrue();
  }
}
