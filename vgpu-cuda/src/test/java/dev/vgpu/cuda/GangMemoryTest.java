package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
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
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The seat's side of a lease on several GPUs: each has an account with the whole quota. */
class GangMemoryTest {
  private static final long UNITS = 1_000;
  private static final MemorySize QUOTA = MemorySize.ofBytes(UNITS * ShmLayout.MEMORY_UNIT);

  @TempDir private Path run;
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private CudaHookBackend backend;
  private Enforcement seat;

  @BeforeEach
  void openSeat() throws IOException {
    Files.createFile(run.resolve("hook.so"));
    String hook = run.resolve("hook.so").toString();
    backend = new CudaHookBackend(Map.of("VGPU_HOOK", hook, "VGPU_CONTEXT_MEMORY", "65536"));
    seat = opened();
  }

  private Enforcement opened() {
    Enforcement opened = backend.open(run);
    toClose.add(opened);
    return opened;
  }

  @AfterEach
  void closeAll() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
  }

  private static VirtualGpuRequest request(int gpus, MemorySize quota) {
    return VirtualGpuRequest.builder().memory(quota).gpuCount(gpus).build();
  }

  private EnforcedLease prepare(int gpus) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases/a"));
    TestGpu gpu = TestGpu.named("GPU-1");
    return seat.prepare("a", directory, gpu, request(gpus, QUOTA), new SilentListener());
  }

  private FakeHook attach(long pid) throws IOException {
    FakeHook hook = FakeHook.attach(run, "a", pid);
    toClose.add(hook);
    return hook;
  }

  private FakeHook attach() throws IOException {
    return attach(ProcessHandle.current().pid());
  }

  private Process sleeper() throws IOException {
    Process process = new ProcessBuilder("sleep", "1000").start();
    toClose.add(process::destroyForcibly);
    return process;
  }

  private static void await(BooleanSupplier condition) {
    for (int wait = 0; wait < 20_000 && !condition.getAsBoolean(); wait++) {
      LockSupport.parkNanos(1_000_000);
    }
    assertThat(condition.getAsBoolean()).isTrue();
  }

  private static long bytes(long units) {
    return units * ShmLayout.MEMORY_UNIT;
  }

  @Test
  void quotaHoldsOnEachGpu() throws IOException {
    EnforcedLease lease = prepare(3);
    FakeHook hook = attach();
    assertThat(hook.charge(UNITS + 1, 1)).isFalse();
    for (int gpu = 0; gpu < 3; gpu++) {
      assertThat(hook.charge(UNITS, gpu)).isTrue();
      assertThat(hook.charge(1, gpu)).isFalse();
    }
    assertThat(lease.memoryUsed().bytes()).isEqualTo(bytes(3 * UNITS));
    assertThat(hook.charge(-UNITS, 1)).isTrue();
    assertThat(hook.charge(1, 0)).isFalse();
    assertThat(lease.memoryUsed().bytes()).isEqualTo(bytes(2 * UNITS));
    assertThat(lease.memoryUsed(0, 3).bytes()).isEqualTo(bytes(UNITS));
    assertThat(lease.memoryUsed(1, 3).bytes()).isZero();
  }

  @Test
  void quotaIsNotLoweredBelowWhatOneGpuHolds() throws IOException {
    EnforcedLease lease = prepare(2);
    FakeHook hook = attach();
    assertThat(hook.charge(600, 1)).isTrue();
    assertThat(lease.tryResize(request(2, MemorySize.ofBytes(bytes(599))), 1_000)).isFalse();
    assertThat(lease.tryResize(request(2, MemorySize.ofBytes(bytes(600))), 1_000)).isTrue();
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(bytes(600));
  }

  @Test
  void memoryOfADeadProcessIsTakenBackOnEachGpu() throws Exception {
    EnforcedLease lease = prepare(3);
    Process process = sleeper();
    FakeHook dead = attach(process.pid());
    FakeHook living = attach();
    for (int gpu = 0; gpu < 3; gpu++) {
      assertThat(dead.charge(100 + gpu, gpu)).isTrue();
      assertThat(living.charge(10 + gpu, gpu)).isTrue();
    }
    process.destroyForcibly().waitFor();
    dead.close();
    await(() -> lease.memoryUsed().bytes() == bytes(33));
    for (int gpu = 0; gpu < 3; gpu++) {
      assertThat(living.charge(UNITS - 10 - gpu, gpu)).isTrue();
      assertThat(living.charge(1, gpu)).isFalse();
    }
  }

  @Test
  void nextSeatKeepsTheAccounts() throws Exception {
    prepare(2);
    Process process = sleeper();
    FakeHook dead = attach(process.pid());
    FakeHook living = attach();
    assertThat(dead.charge(100, 1)).isTrue();
    assertThat(living.charge(30, 0)).isTrue();
    assertThat(living.charge(UNITS - 100, 1)).isTrue();
    seat.close();
    process.destroyForcibly().waitFor();
    seat = opened();
    EnforcedLease lease = prepare(2);
    assertThat(lease.memoryUsed().bytes()).isEqualTo(bytes(UNITS - 70));
    assertThat(living.charge(100, 1)).isTrue();
    assertThat(living.charge(1, 1)).isFalse();
    assertThat(lease.memoryHolders()).containsExactly(living.pid);
  }

  @Test
  void leaseOfAnEarlierVersionKeepsItsOneAccount() throws IOException {
    prepare(2);
    FakeHook hook = attach();
    seat.close();
    hook.grant.setInt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS, 0);
    seat = opened();
    EnforcedLease lease = prepare(2);
    assertThat(hook.grant.intAt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS)).isZero();
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(bytes(2 * UNITS));
    assertThat(lease.tryResize(request(2, MemorySize.ofBytes(bytes(10))), 1_000)).isTrue();
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(bytes(20));
  }

  @Test
  void singleGpuHasTheOneAccount() throws IOException {
    prepare(1);
    assertThat(attach().grant.intAt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS)).isZero();
  }

  @Test
  void moreGpusThanAccountsAreRefused() {
    TestGpu gpu = TestGpu.named("GPU-1");
    assertThat(backend.unable(gpu, request(ShmLayout.MEMORY_GPUS, QUOTA))).isEmpty();
    assertThat(backend.unable(gpu, request(ShmLayout.MEMORY_GPUS + 1, QUOTA)))
        .hasValueSatisfying(
            why -> assertThat(why).contains("at most 8 GPUs").contains("ask for fewer GPUs"));
  }
}
