package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_ANNOUNCES;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_BITS;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_OBEYS;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_TOLD;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.vgpu.ContainerSpec.Access;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Express;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.ExpressFiles;
import dev.vgpu.cuda.pages.SharedPage;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.files.ProcessUser;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The seat's part in an express lane. */
class ExpressLaneTest {
  private static final String GPU = "GPU-1";

  private final List<AutoCloseable> toClose = new ArrayList<>();
  private final BlockingQueue<String> suspicions = new LinkedBlockingQueue<>();
  private final BlockingQueue<String> yields = new LinkedBlockingQueue<>();
  private Path run;
  private Enforcement seat;

  private final class Listener implements EnforcedLease.Listener {
    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void processes(int attached) {}

    @Override
    public void suspect(String reason) {
      suspicions.add(reason);
    }

    @Override
    public void yielded(String by, long times) {
      yields.add(by + " " + times);
    }
  }

  @BeforeEach
  void openSeat() throws IOException {
    run = Files.createTempDirectory("vgpu");
    Files.createFile(run.resolve("hook.so"));
    toClose.add(
        () -> {
          try (var files = Files.walk(run)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
              Files.deleteIfExists(file);
            }
          }
        });
    seat = seat(Map.of());
  }

  private Enforcement seat(Map<String, String> more) {
    Map<String, String> environment = new java.util.HashMap<>(more);
    environment.put("VGPU_HOOK", run.resolve("hook.so").toString());
    environment.put("VGPU_CONTEXT_MEMORY", "65536");
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

  private EnforcedLease prepare(Enforcement by, String id, PreemptionClass which)
      throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(64))
            .preemptionClass(which)
            .build();
    return by.prepare(id, directory, TestGpu.named(GPU), request, new Listener());
  }

  private EnforcedLease prepare(String id, PreemptionClass which) throws IOException {
    return prepare(seat, id, which);
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

  private SharedPage express() throws IOException {
    try (FileChannel channel =
        FileChannel.open(
            run.resolve("express").resolve(GPU),
            StandardOpenOption.READ,
            StandardOpenOption.WRITE)) {
      return new SharedPage(channel.map(FileChannel.MapMode.READ_WRITE, 0, EXPRESS_SIZE));
    }
  }

  private static long mask(FakeHook hook) {
    return hook.grant.longAt(GRANT_OFFSET + Grant.EXPRESS_MASK);
  }

  private static int inflightUs(FakeHook hook) {
    return hook.grant.intAt(GRANT_OFFSET + Grant.INFLIGHT_US);
  }

  /** The bits that belong to a hook's slot. */
  private static long bits(FakeHook hook) {
    long bits = 0;
    for (int bit = 0; bit < EXPRESS_BITS; bit++) {
      if (hook.grant.buffer().get(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit) == hook.slot) {
        bits |= 1L << bit;
      }
    }
    return bits;
  }

  private static void announce(SharedPage express, long bit) {
    int at = EXPRESS_OFFSET + Express.BUSY;
    express.setLong(at, express.longAt(at) | bit);
  }

  private static long busy(SharedPage express) {
    return express.longAt(EXPRESS_OFFSET + Express.BUSY);
  }

  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(1_000_000); // the tests' own time limit ends it
    }
  }

  @Test
  void urgentProcessesGetBitsAndOfflineOnesHeedThem() throws Exception {
    prepare("on", PreemptionClass.ONLINE);
    prepare("near", PreemptionClass.NEARLINE);
    prepare("off", PreemptionClass.OFFLINE);
    FakeHook offline = attach("off");
    assertThat(mask(offline)).isZero();
    int aloneUs = inflightUs(offline);

    FakeHook first = attach("on");
    FakeHook second = attach("on");
    FakeHook third = attach("near");
    assertThat(List.of(bits(first), bits(second), bits(third)))
        .allMatch(bits -> Long.bitCount(bits) == 1)
        .doesNotHaveDuplicates();
    assertThat(mask(offline)).isEqualTo(bits(first) | bits(second) | bits(third));
    assertThat(List.of(mask(first), mask(third))).containsOnly(0L);
    assertThat(bits(offline)).isZero();
    assertThat(inflightUs(offline)).isLessThan(aloneUs);
  }

  @Test
  void forOneThatMayNotWriteThePageTheSeatSetsTheBit() throws Exception {
    EnforcedLease lease = prepare("on", PreemptionClass.ONLINE);
    FakeHook hook = attach("on");
    SharedPage express = express();
    hook.set(Slot.EXPRESS, EXPRESS_TOLD);
    int beat = EXPRESS_OFFSET + Express.BEAT_NS + 8 * Long.numberOfTrailingZeros(bits(hook));
    lease.open();
    for (int i = 0; i < 3; i++) {
      hook.set(Slot.BUSY, 1);
      hook.want();
      await(() -> busy(express) == bits(hook));
      assertThat(lease.yieldsByItself()).isTrue();
      long seen = express.longAt(beat);
      await(() -> express.longAt(beat) > seen); // so that it does not go stale
      hook.set(Slot.WAITING, 0);
      hook.idle();
      await(() -> busy(express) == 0);
    }
    // At a shut gate, it holds no process back.
    assertThat(lease.shut()).isTrue();
    hook.set(Slot.BUSY, 1);
    hook.want();
    await(lease::hasWork);
    assertThat(busy(express)).isZero();
    // Nor if it reports work but its heartbeat has stopped.
    lease.open();
    await(() -> busy(express) != 0);
    hook.stopped = true;
    await(() -> busy(express) == 0);
  }

  @Test
  void aContainerMayWriteItsOwnReportAlone() throws Exception {
    EnforcedLease online = prepare("on", PreemptionClass.ONLINE);
    EnforcedLease offline = prepare("off", PreemptionClass.OFFLINE);
    assertThat(mounts(online, Access.READ_WRITE)).containsExactly("leases/on/report");
    assertThat(mounts(offline, Access.READ_WRITE)).containsExactly("leases/off/report");
    assertThat(mounts(online, Access.READ_ONLY))
        .contains("leases/on")
        .doesNotContain("express/" + GPU);
    assertThat(mounts(offline, Access.READ_ONLY)).contains("leases/off", "express/" + GPU);
  }

  private List<String> mounts(EnforcedLease lease, Access access) {
    Map<String, String> environment = new java.util.HashMap<>(lease.environment());
    return new CudaHookBackend(Map.of())
        .containerSpec(environment).mounts().stream()
            .filter(mount -> mount.access() == access && mount.containerPath().startsWith(run))
            .map(mount -> run.relativize(mount.containerPath()).toString())
            .toList();
  }

  @Test
  void theGroupMayReadThePageAndNotWriteIt() throws Exception {
    assumeTrue(ProcessUser.id() == 0); // only root can open a directory to another group
    Files.setAttribute(run, "unix:gid", 54_321);
    Files.setPosixFilePermissions(run, PosixFilePermissions.fromString("rwxr-x---"));
    prepare("on", PreemptionClass.ONLINE);
    assertThat(Files.getPosixFilePermissions(run.resolve("express").resolve(GPU)))
        .isEqualTo(PosixFilePermissions.fromString("rw-r-----"));
  }

  @Test
  void whoHeldAProcessBackIsTold() throws Exception {
    prepare("near", PreemptionClass.NEARLINE);
    prepare("on", PreemptionClass.ONLINE);
    prepare("off", PreemptionClass.OFFLINE);
    FakeHook nearline = attach("near");
    FakeHook online = attach("on");
    FakeHook offline = attach("off");
    heldBack(offline, 3, Long.numberOfTrailingZeros(bits(online)));
    assertThat(yields.take()).isEqualTo("on 3");
    heldBack(offline, 9, 64); // no such bit: blamed on no lease, not even later
    heldBack(offline, 11, Long.numberOfTrailingZeros(bits(nearline)));
    assertThat(yields.take()).matches("near [28]"); // the seat may not have looked in between
    heldBack(offline, -5, Long.numberOfTrailingZeros(bits(online)));
    heldBack(offline, 12, Long.numberOfTrailingZeros(bits(online)));
    assertThat(yields.take()).matches("on (1|12)");
  }

  private static void heldBack(FakeHook hook, long times, int bit) {
    hook.set(Slot.YIELDED_TO, bit + 1);
    hook.setLong(Slot.YIELDS, times);
  }

  @Test
  void theBitOfADeadProcessIsCleared() throws Exception {
    prepare("on", PreemptionClass.ONLINE);
    prepare("off", PreemptionClass.OFFLINE);
    FakeHook offline = attach("off");
    Process process = sleeper();
    FakeHook hook = attach("on", process.pid());
    SharedPage express = express();
    announce(express, bits(hook));
    process.destroyForcibly().waitFor();
    hook.close();
    await(() -> busy(express) == 0 && mask(offline) == 0);
    assertThat(bits(hook)).isZero();
  }

  @Test
  void theBitOfAStoppedProcessIsClearedAndStaysItsOwn() throws Exception {
    prepare("on", PreemptionClass.ONLINE);
    prepare("off", PreemptionClass.OFFLINE);
    FakeHook offline = attach("off");
    Process process = sleeper();
    FakeHook hook = attach("on", process.pid());
    SharedPage express = express();
    hook.set(Slot.BUSY, 1);
    announce(express, bits(hook));
    hook.stopped = true;
    new ProcessBuilder("sh", "-c", "kill -STOP " + process.pid()).start().waitFor();
    await(() -> busy(express) == 0);
    assertThat(mask(offline)).isEqualTo(bits(hook)).isNotZero();
  }

  @Test
  void aLeaseIsToldWhetherToObey() throws Exception {
    prepare("on", PreemptionClass.ONLINE);
    EnforcedLease lease = prepare("off", PreemptionClass.OFFLINE);
    FakeHook offline = attach("off");
    FakeHook hook = attach("on");
    lease.yielding(false);
    assertThat(mask(offline)).isZero();
    FakeHook later = attach("on");
    assertThat(mask(offline)).isZero();
    lease.yielding(true);
    assertThat(mask(offline)).isEqualTo(bits(hook) | bits(later));
  }

  @Test
  void yieldsByItselfOnceAllItsProcessesDoTheirPart() throws Exception {
    EnforcedLease online = prepare("on", PreemptionClass.ONLINE);
    EnforcedLease offline = prepare("off", PreemptionClass.OFFLINE);
    FakeHook on = attach("on");
    FakeHook off = attach("off");
    assertThat(online.yieldsByItself() && offline.yieldsByItself()).isTrue();
    on.setLong(Slot.LAUNCHES, 1);
    off.setLong(Slot.LAUNCHES, 1);
    await(() -> !online.yieldsByItself() && !offline.yieldsByItself());
    on.set(Slot.EXPRESS, EXPRESS_ANNOUNCES);
    off.set(Slot.EXPRESS, EXPRESS_OBEYS);
    await(() -> online.yieldsByItself() && offline.yieldsByItself());
    attach("off").setLong(Slot.LAUNCHES, 1);
    await(() -> !offline.yieldsByItself());
  }

  @Test
  void whenAllBitsAreTakenTheNextGoesWithout() throws Exception {
    EnforcedLease lease = prepare("on", PreemptionClass.ONLINE);
    long taken = 0;
    for (int i = 0; i < EXPRESS_BITS; i++) {
      FakeHook hook = FakeHook.attach(run, "on", 1 + i, 7); // of a container
      toClose.add(hook);
      hook.set(Slot.EXPRESS, EXPRESS_ANNOUNCES);
      taken |= bits(hook);
    }
    assertThat(taken).isEqualTo(-1L);
    FakeHook last = attach("on");
    assertThat(bits(last)).isZero();
    last.set(Slot.BUSY, 1);
    await(() -> !lease.yieldsByItself());
  }

  @Test
  void bitsSurviveTheSeat() throws Exception {
    prepare("a", PreemptionClass.ONLINE);
    prepare("b", PreemptionClass.ONLINE);
    prepare("off", PreemptionClass.OFFLINE);
    Process process = sleeper();
    FakeHook dead = attach("a", process.pid());
    FakeHook living = attach("b");
    FakeHook offline = attach("off");
    final long livingBit = bits(living);
    final long deadBit = bits(dead);
    SharedPage express = express();
    announce(express, livingBit | deadBit);
    seat.close();
    process.destroyForcibly().waitFor();
    assertThat(busy(express)).isEqualTo(livingBit | deadBit);

    Enforcement next = seat(Map.of());
    prepare(next, "a", PreemptionClass.ONLINE);
    // The living process's lease is not taken over yet; its bit must not go to another process.
    FakeHook early = attach("a");
    assertThat(bits(early)).isNotZero().isNotEqualTo(livingBit);
    prepare(next, "off", PreemptionClass.OFFLINE);
    prepare(next, "b", PreemptionClass.ONLINE);
    assertThat(bits(living)).isEqualTo(livingBit);
    assertThat(busy(express)).isEqualTo(livingBit);
    assertThat(mask(offline)).isEqualTo(livingBit | bits(early));
  }

  @Test
  void aClosedLeaseGivesItsBitsBack() throws Exception {
    EnforcedLease lease = prepare("on", PreemptionClass.ONLINE);
    prepare("off", PreemptionClass.OFFLINE);
    FakeHook offline = attach("off");
    FakeHook hook = attach("on");
    SharedPage express = express();
    announce(express, bits(hook));
    lease.close();
    assertThat(busy(express)).isZero();
    assertThat(mask(offline)).isZero();
    assertThat(bits(hook)).isZero();
  }

  @Test
  void aLaneThatIsCutShortIsGivenUp() throws Exception {
    EnforcedLease online = prepare("on", PreemptionClass.ONLINE);
    prepare("off", PreemptionClass.OFFLINE);
    FakeHook offline = attach("off");
    FakeHook hook = attach("on");
    assertThat(mask(offline)).isEqualTo(bits(hook));
    try (FileChannel channel =
        FileChannel.open(run.resolve("express").resolve(GPU), StandardOpenOption.WRITE)) {
      channel.truncate(0);
    }
    await(() -> mask(offline) == 0);
    assertThat(online.yieldsByItself()).isFalse();
  }

  @Test
  void itCanBeSwitchedOff() throws Exception {
    seat.close();
    Enforcement plain = seat(Map.of("VGPU_EXPRESS_LANE", "off"));
    EnforcedLease lease = prepare(plain, "on", PreemptionClass.ONLINE);
    FakeHook hook = attach("on");
    assertThat(bits(hook)).isZero();
    assertThat(lease.yieldsByItself()).isFalse();
    assertThat(Files.exists(run.resolve("express"))).isFalse();
  }

  @Test
  void aFileNameIsMadeOfAnyGpusName() {
    assertThat(ExpressFiles.name("GPU-01ab-cd")).isEqualTo("GPU-01ab-cd");
    assertThat(ExpressFiles.name("MIG-GPU-1/2/3")).matches("MIG-GPU-1_2_3-[0-9a-f]+");
    assertThat(ExpressFiles.name("../x")).doesNotContain("/", ".");
    assertThat(ExpressFiles.name("x".repeat(200))).hasSizeLessThan(64);
  }

  @Test
  void aLiarIsToldOnceAndBelievedAsFarAsItCanBe() throws Exception {
    EnforcedLease lease = prepare("on", PreemptionClass.ONLINE);
    FakeHook hook = attach("on");
    hook.set(Slot.BUSY, -5);
    assertThat(nextSuspicion()).contains("process " + hook.pid, "-5 pieces of work in flight");
    hook.set(Slot.BUSY, 1);
    final long nowNs = NanoClock.SYSTEM.nanoTime();
    hook.setLong(Slot.GPU_NS, Long.MAX_VALUE / 2);
    assertThat(lease.gpuTimeNs(nowNs)).isLessThan(60_000_000_000L);
    assertThat(nextSuspicion()).contains("more GPU time, when at most");
    hook.setLong(Slot.GPU_NS, 5);
    long before = lease.gpuTimeNs(nowNs);
    assertThat(nextSuspicion()).contains("reports 5 ns of GPU time after");
    hook.setLong(Slot.GPU_NS, 4);
    assertThat(lease.gpuTimeNs(nowNs)).isEqualTo(before);
    hook.stopped = true; // only its heartbeat: the process itself runs
    assertThat(nextSuspicion()).contains("sent no heartbeat");
    await(() -> !lease.hasWork());
    assertThat(suspicions).isEmpty();
  }

  private String nextSuspicion() throws InterruptedException {
    return String.valueOf(suspicions.poll(20, TimeUnit.SECONDS));
  }

  /** The weakest process decides: a capability that one process lacks cannot be promised. */
  @Test
  void leaseTellsWhereItsProcessesCanBeInterruptedAndWhyNotInsideAKernel() throws IOException {
    EnforcedLease lease = prepare("off", PreemptionClass.OFFLINE);
    assertThat(lease.preemption()).isEmpty();
    assertThat(lease.preemptionReason()).isEmpty();
    FakeHook first = attach("off");
    first.set(ShmLayout.Slot.LEVEL2, ShmLayout.LEVEL2_STOPPED);
    assertThat(lease.preemption()).contains(Capabilities.Preemption.INSIDE_KERNEL);
    assertThat(lease.preemptionReason()).isEmpty();
    FakeHook second = attach("off", sleeper().pid());
    second.set(ShmLayout.Slot.LEVEL2, ShmLayout.LEVEL2_OFF);
    second.set(ShmLayout.Slot.LEVEL2_REASON, ShmLayout.LEVEL2_WHY_TENANTS);
    assertThat(lease.preemption()).contains(Capabilities.Preemption.BETWEEN_KERNELS);
    assertThat(lease.preemptionReason().orElseThrow()).contains("several virtual GPUs", "pid=");
    second.set(ShmLayout.Slot.LEVEL2, ShmLayout.LEVEL2_READY);
    assertThat(lease.preemption()).contains(Capabilities.Preemption.INSIDE_KERNEL);
  }
}
