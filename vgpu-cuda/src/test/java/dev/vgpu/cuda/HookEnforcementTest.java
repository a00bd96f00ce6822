package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_REVOKED;
import static dev.vgpu.cuda.layout.ShmLayout.MESSAGE_VERSION;
import static dev.vgpu.cuda.layout.ShmLayout.TURN_RESTING;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.Header;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.testing.TestSeed;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class HookEnforcementTest {
  /** A pid namespace other than this process's. */
  private static final long CONTAINER = 7;

  private static final long UNITS = 1 << 20;
  private static final MemorySize QUOTA = MemorySize.ofBytes(UNITS * 256);

  private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private Path run;
  private Enforcement seat;

  private final class Listener implements EnforcedLease.Listener {
    private final String name;

    Listener(String name) {
      this.name = name;
    }

    @Override
    public void wanted() {
      events.add(name + " wanted");
    }

    @Override
    public void drained() {
      events.add(name + " drained");
    }

    @Override
    public void processes(int attached) {
      events.add(name + " processes " + attached);
    }
  }

  @BeforeEach
  void openSeat() throws IOException {
    run = Files.createTempDirectory("vgpu");
    Path hook = Files.createFile(run.resolve("hook.so"));
    toClose.add(() -> deleteAll(run));
    seat = seat(Map.of("VGPU_HOOK", hook.toString(), "VGPU_CONTEXT_MEMORY", "65536"));
  }

  private Enforcement seat(Map<String, String> environment) {
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

  private static void deleteAll(Path directory) throws IOException {
    try (var files = Files.walk(directory)) {
      for (Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
        Files.deleteIfExists(file);
      }
    }
  }

  private EnforcedLease prepare(String id) throws IOException {
    return prepare(seat, id);
  }

  private EnforcedLease prepare(Enforcement by, String id) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    TestGpu gpu = TestGpu.named("GPU-1");
    return by.prepare(id, directory, gpu, request(QUOTA), new Listener(id));
  }

  private static VirtualGpuRequest request(MemorySize quota) {
    return VirtualGpuRequest.builder()
        .memory(quota)
        .policy(SharePolicy.FIXED_SHARE)
        .computePercent(50)
        .build();
  }

  private FakeHook attach(String id, long pid) throws IOException {
    FakeHook hook = FakeHook.attach(run, id, pid);
    toClose.add(hook);
    return hook;
  }

  private FakeHook attach(String id) throws IOException {
    return attach(id, ProcessHandle.current().pid());
  }

  private Process sleeper() throws IOException {
    Process process = new ProcessBuilder("sleep", "1000").start();
    toClose.add(process::destroyForcibly);
    return process;
  }

  /** Tolerates a second "wanted": work may be noticed by a message and by a look at the page. */
  private void expect(String event) throws InterruptedException {
    assertThat(event.endsWith("wanted") ? next() : nextEvent()).isEqualTo(event);
  }

  private String next() throws InterruptedException {
    return String.valueOf(events.poll(20, TimeUnit.SECONDS));
  }

  private String nextEvent() throws InterruptedException {
    String event = next();
    while (event.endsWith("wanted")) {
      event = next();
    }
    return event;
  }

  @Test
  void aProcessGetsTurns() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    expect("a processes 1");
    assertThat(lease.processes()).containsExactly(ProcessHandle.current().pid());
    assertThat(hook.slot).isEqualTo(1);
    assertThat(hook.isOpen()).isFalse();
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(QUOTA.bytes());
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.CONTEXT_BYTES)).isEqualTo(65_536);
    assertThat(hook.grant.intAt(GRANT_OFFSET + Grant.ENTITLED_PERMILLE)).isEqualTo(500);

    assertThat(lease.hasWork()).isFalse();
    hook.want();
    expect("a wanted");
    assertThat(lease.hasWork()).isTrue();
    lease.contended(true);
    lease.open();
    assertThat(hook.isOpen()).isTrue();
    hook.work();
    assertThat(lease.shut()).isFalse();
    assertThat(hook.isOpen()).isFalse();
    hook.idle();
    expect("a drained");
    assertThat(lease.shut()).isTrue();
  }

  @Test
  void whileOthersWaitTheEndOfWorkIsTold() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    expect("a processes 1");
    hook.want();
    expect("a wanted");
    lease.contended(true);
    hook.work();
    lease.open();
    hook.idle();
    expect("a drained");
    assertThat(turnFlags(hook) & ~TURN_RESTING).isEqualTo(3);
    lease.contended(false);
    // TURN_LIMITED: a fixed share may be held back even if no other tenant waits.
    assertThat(turnFlags(hook) & ~TURN_RESTING).isEqualTo(2);
  }

  private static int turnFlags(FakeHook hook) {
    return hook.grant.intAt(GRANT_OFFSET + Grant.TURN_FLAGS);
  }

  /** Waits for the flag; the test's timeout ends it. */
  private static void awaitRest(FakeHook hook, boolean rest) {
    while ((turnFlags(hook) & TURN_RESTING) != 0 != rest) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(1_000_000);
    }
  }

  @Test
  void whereNoneHasWorkItsBeginningIsToBeTold() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    lease.open();
    awaitRest(hook, true);
    hook.want();
    hook.work();
    awaitRest(hook, false);
    hook.idle();
    awaitRest(hook, true);
    // Work that began before the process knew is noticed all the same.
    hook.work();
    awaitRest(hook, false);
    hook.idle();
    awaitRest(hook, true);
  }

  @Test
  void memoryOfADeadProcessIsTakenBackAndItsTurnEnds() throws Exception {
    EnforcedLease lease = prepare("a");
    Process process = sleeper();
    FakeHook hook = attach("a", process.pid());
    expect("a processes 1");
    FakeHook other = attach("a");
    expect("a processes 2");
    assertThat(hook.charge(1_000)).isTrue();
    assertThat(other.charge(10)).isTrue();
    assertThat(hook.charge(UNITS)).isFalse();
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(1_010 * 256));
    hook.setLong(Slot.LAUNCHES, 7);
    hook.setLong(Slot.DENIED, 1);
    hook.setLong(Slot.COPY_NS, 5_000);
    other.setLong(Slot.COPY_NS, 600);
    assertThat(lease.copyTimeNs()).isEqualTo(5_600);
    hook.want();
    expect("a wanted");
    lease.open();
    hook.work();
    assertThat(lease.shut()).isFalse();
    process.destroyForcibly().waitFor();
    hook.close();
    assertThat(List.of(nextEvent(), nextEvent()))
        .containsExactlyInAnyOrder("a processes 1", "a drained");
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(10 * 256));
    assertThat(lease.launches()).isEqualTo(7);
    assertThat(lease.deniedAllocations()).isEqualTo(1);
    assertThat(lease.copyTimeNs()).isEqualTo(5_600);
    assertThat(other.grant.longAt(GRANT_OFFSET + Grant.RETIRED_LAUNCHES)).isEqualTo(7);
  }

  @Test
  void itsProcessesAreToldItsGpus() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    lease.gpus(List.of(new GpuId("GPU-1"), new GpuId("MIG-2")));
    assertThat(devices(hook)).isEqualTo("GPU-1,MIG-2");
    lease.gpus(List.of(new GpuId("GPU-1"), new GpuId("a name that CUDA does not know")));
    assertThat(devices(hook)).isEmpty();
    lease.gpus(Collections.nCopies(100, new GpuId("GPU-" + "0".repeat(36))));
    assertThat(devices(hook)).as("more than fit").isEmpty();
  }

  private static String devices(FakeHook hook) {
    byte[] bytes = new byte[ShmLayout.GrantMore.DEVICES_LENGTH];
    hook.grant.buffer().get(ShmLayout.GRANT_MORE_OFFSET + ShmLayout.GrantMore.DEVICES, bytes);
    return new String(bytes, StandardCharsets.US_ASCII).trim();
  }

  @Test
  void aDeathIsNoticedThoughAnotherHoldsTheSocket() throws Exception {
    EnforcedLease lease = prepare("a");
    Process process = sleeper();
    FakeHook hook = attach("a", process.pid());
    expect("a processes 1");
    assertThat(hook.charge(5)).isTrue();
    process.destroyForcibly().waitFor();
    expect("a processes 0");
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void aProcessThatClosesTheSocketAndLivesOnKeepsItsSlot() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    expect("a processes 1");
    assertThat(hook.charge(5)).isTrue();
    hook.close();
    FakeHook again = hook.again(run);
    toClose.add(again);
    assertThat(again.slot).isEqualTo(hook.slot);
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(5 * 256));
  }

  @Test
  void aStoppedProcessDoesNotHoldOthers() throws Exception {
    EnforcedLease lease = prepare("a");
    Process process = sleeper();
    FakeHook hook = attach("a", process.pid());
    expect("a processes 1");
    hook.want();
    expect("a wanted");
    lease.open();
    hook.work();
    assertThat(lease.hasWork()).isTrue();
    hook.stopped = true;
    signal("STOP", process);
    if (!lease.shut()) {
      expect("a drained");
    }
    // If the stop was seen before the gate was shut, its work counts for some more milliseconds.
    while (lease.hasWork()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
    signal("CONT", process);
    hook.setLong(Slot.HEARTBEAT_NS, Long.MAX_VALUE);
    expect("a wanted");
    assertThat(lease.hasWork()).isTrue();
  }

  private static void signal(String name, Process process) throws Exception {
    String pid = Long.toString(process.pid());
    assertThat(new ProcessBuilder("sh", "-c", "kill -" + name + " " + pid).start().waitFor())
        .isZero();
  }

  @Test
  void gpuTimeNeverFallsNorOutrunsTheClock() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    long began = hook.grant.longAt(GRANT_OFFSET - Header.BYTES + Header.HEARTBEAT_NS);
    hook.setLong(Slot.GPU_NS, 1_000);
    long now = began + 10_000_000_000L;
    assertThat(lease.gpuTimeNs(now)).isEqualTo(1_000);
    hook.setLong(Slot.GPU_NS, 500);
    assertThat(lease.gpuTimeNs(now)).isEqualTo(1_000);
    hook.setLong(Slot.GPU_NS, 700);
    assertThat(lease.gpuTimeNs(now)).isEqualTo(1_200);
    hook.setLong(Slot.GPU_NS, Long.MAX_VALUE);
    assertThat(lease.gpuTimeNs(now)).isLessThanOrEqualTo(now - began + 1_000_000_000L);
    hook.setLong(Slot.GPU_NS, Long.MIN_VALUE);
    long last = lease.gpuTimeNs(now);
    assertThat(lease.gpuTimeNs(now + 1)).isEqualTo(last);
  }

  @Test
  void theNextSeatKeepsTheLivingAndTakesBackFromTheDead() throws Exception {
    prepare("a");
    Process process = sleeper();
    FakeHook dead = attach("a", process.pid());
    FakeHook living = attach("a");
    expect("a processes 1");
    expect("a processes 2");
    assertThat(dead.charge(100)).isTrue();
    assertThat(living.charge(30)).isTrue();
    dead.setLong(Slot.GPU_NS, 4_000);
    living.setLong(Slot.GPU_NS, 3_000);
    seat.close();
    process.destroyForcibly().waitFor();

    Enforcement next = seat(Map.of("VGPU_HOOK", run.resolve("hook.so").toString()));
    EnforcedLease lease = prepare(next, "a");
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofBytes(30 * 256));
    assertThat(lease.gpuTimeNs(0)).isEqualTo(7_000);
    assertThat(lease.processes()).containsExactly(living.pid);
    assertThat(living.again(run).slot).isEqualTo(living.slot);
    assertThat(attach("a").slot).isNotEqualTo(living.slot);
  }

  @Test
  void aSmallerQuotaIsRefusedWhileMoreIsHeld() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    assertThat(hook.charge(1_000)).isTrue();
    VirtualGpuRequest small = request(MemorySize.ofBytes(999 * 256));
    assertThat(lease.tryResize(small, 100)).isFalse();
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(QUOTA.bytes());
    assertThat(hook.charge(-1)).isTrue();
    assertThat(lease.tryResize(small, 100)).isTrue();
    assertThat(hook.grant.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT)).isEqualTo(999 * 256);
    assertThat(hook.grant.intAt(GRANT_OFFSET + Grant.ENTITLED_PERMILLE)).isEqualTo(100);
  }

  @Test
  void aClosedLeaseRefusesWork() throws Exception {
    EnforcedLease lease = prepare("a");
    FakeHook hook = attach("a");
    lease.close();
    lease.close();
    assertThat(hook.grant.intAt(GRANT_OFFSET + Grant.WORD) & GRANT_REVOKED).isNotZero();
    assertThat(hook.channel.read(ByteBuffer.allocate(1))).isNegative();
    assertThatThrownBy(() -> attach("a")).hasMessageContaining("no such virtual GPU");
  }

  @Test
  void aQuotaBelowAContextIsRefused() throws Exception {
    Path directory = Files.createDirectories(run.resolve("leases/small"));
    assertThatThrownBy(
            () ->
                seat.prepare(
                    "small",
                    directory,
                    TestGpu.named("GPU-1"),
                    request(MemorySize.ofBytes(65_535)),
                    new Listener("small")))
        .isInstanceOf(VgpuException.class)
        .hasMessageContaining("smaller than a CUDA context")
        .hasMessageContaining("context=64KiB");
    assertThat(directory).isEmptyDirectory();
  }

  @Test
  void whoeverTalksNonsenseIsCutOffAndNobodyElse() throws Exception {
    prepare("a");
    FakeHook good = attach("a");
    Random random = TestSeed.random();
    for (int i = 0; i < 50; i++) {
      FakeHook bad = attach("a");
      byte[] bytes = new byte[1 + random.nextInt(2_000)];
      random.nextBytes(bytes);
      bad.channel.write(ByteBuffer.wrap(bytes));
      bad.close();
    }
    FakeHook flood = attach("a");
    assertThatThrownBy(
            () -> {
              for (int i = 0; i < 1_000_000; i++) {
                flood.want();
              }
            })
        .isInstanceOf(IOException.class);
    good.want();
    FakeHook late = attach("a");
    assertThat(late.channel.isConnected()).isTrue();
    assertThat(good.channel.isConnected()).isTrue();
  }

  @Test
  void aForeignSlotAndAnotherVersionAreRefused() throws Exception {
    prepare("a");
    FakeHook mine = attach("a");
    Process process = sleeper();
    FakeHook other = attach("a", process.pid());
    assertThatThrownBy(
            () -> {
              FakeHook thief = attach("a");
              thief.slot = other.slot;
              toClose.add(thief.again(run));
            })
        .hasMessageContaining("not of this process");
    FakeHook old = attach("a");
    old.close();
    assertThat(mine.channel.isOpen()).isTrue();
    assertThat(MESSAGE_VERSION).isEqualTo(1);
  }

  @Test
  void allSlotsCanBeTaken() throws Exception {
    EnforcedLease lease = prepare("a");
    for (int i = 1; i < ShmLayout.SLOT_COUNT; i++) {
      toClose.add(FakeHook.attach(run, "a", i, CONTAINER));
    }
    assertThatThrownBy(() -> attach("a")).hasMessageContaining("its limit of processes");
    assertThat(lease.processes()).hasSize(ShmLayout.SLOT_COUNT - 1);
  }

  @Test
  void aReportCutShortEndsItsLeaseAlone() throws Exception {
    EnforcedLease lease = prepare("a");
    EnforcedLease other = prepare("b");
    FakeHook victim = attach("b");
    attach("a");
    expect("b processes 1");
    expect("a processes 1");
    try (FileChannel channel =
        FileChannel.open(run.resolve("leases/a/report"), StandardOpenOption.WRITE)) {
      channel.truncate(0);
    }
    assertThat(lease.hasWork()).isFalse();
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
    assertThat(lease.shut()).isTrue();
    victim.want();
    expect("b wanted");
    assertThat(other.hasWork()).isTrue();
  }
}
