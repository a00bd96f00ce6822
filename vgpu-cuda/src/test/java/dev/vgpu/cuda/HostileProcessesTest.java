package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.NO_SLOT;
import static dev.vgpu.cuda.layout.ShmLayout.STATUS_OK;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.cuda.process.ProcessLife;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Entries of {@code /proc} that processes make long, slow, or empty. */
@Timeout(60)
class HostileProcessesTest {
  /** Above all pids that a kernel assigns; so are the next ones. */
  private static final long PID = 1L << 23;

  @TempDir private Path run;
  @TempDir private Path proc;
  private final List<AutoCloseable> toClose = new ArrayList<>();
  private Enforcement seat;
  private EnforcedLease lease;

  @BeforeEach
  void openSeat() throws IOException {
    Path self = Files.createDirectories(proc.resolve("self/ns"));
    Path namespace = Files.readSymbolicLink(Path.of("/proc/self/ns/pid"));
    Files.createSymbolicLink(self.resolve("pid"), namespace);
    Files.createFile(run.resolve("hook.so"));
    Map<String, String> environment =
        Map.of("VGPU_HOOK", run.resolve("hook.so").toString(), "VGPU_CONTEXT_MEMORY", "65536");
    seat = new CudaHookBackend(environment).open(run, proc);
    lease = prepare("hostile");
    EnforcedLease ignored = prepare("other");
  }

  private EnforcedLease prepare(String id) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder().memory(MemorySize.ofMebibytes(64)).build();
    return seat.prepare(id, directory, TestGpu.named("GPU-1"), request, new SilentListener());
  }

  @AfterEach
  void closeAll() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
    seat.close();
  }

  /** A live process of the seat's own pid namespace. */
  private Path process(long pid, String state) throws IOException {
    Path process = proc.resolve(Long.toString(pid));
    if (Files.notExists(process)) {
      Path namespace = Files.createDirectories(process.resolve("ns")).resolve("pid");
      Files.createSymbolicLink(namespace, Files.readSymbolicLink(Path.of("/proc/self/ns/pid")));
      Files.createSymbolicLink(process.resolve("exe"), Path.of("/bin/program"));
    }
    Path directory = Files.createDirectories(proc.resolve(Long.toString(pid)).resolve("task"));
    Files.writeString(directory.resolveSibling("stat"), stat(pid, state));
    return directory.resolveSibling("maps");
  }

  private static String stat(long pid, String state) {
    return pid + " (a program) " + state + " 0".repeat(40);
  }

  private FakeHook attach(String id, long pid) throws IOException {
    FakeHook hook = FakeHook.attach(run, id, pid);
    toClose.add(hook);
    return hook;
  }

  @Test
  void mappingsThatTakeForEverHoldUpNobodyElse() throws Exception {
    Path maps = process(PID, "S");
    assertThat(new ProcessBuilder("mkfifo", maps.toString()).start().waitFor()).isZero();
    toClose.add(() -> end(maps));
    try (FakeHook hostile = attach("hostile", PID)) {
      assertThat(hostile.slot).isNotEqualTo(NO_SLOT);
    } // its socket ends, but it lives on
    process(PID + 1, "S");
    for (int i = 0; i < 3; i++) {
      FakeHook other = new FakeHook(run, "other", PID + 1, attachNamespace());
      toClose.add(other);
      assertThat(other.hello(NO_SLOT).status()).isEqualTo(STATUS_OK);
    }
    assertThat(lease.processes()).containsExactly(PID);
  }

  /** Lets any reader of the pipe continue. */
  private static void end(Path pipe) throws IOException {
    RandomAccessFile end = new RandomAccessFile(pipe.toFile(), "rw");
    Files.delete(pipe);
    end.close();
  }

  private static long attachNamespace() {
    return new ProcFiles(Path.of("/proc")).pidNamespace();
  }

  @Test
  void processThatHasLeftThePageGivesItsSlotBack() throws Exception {
    Files.writeString(process(PID, "S"), "00400000-00452000 r-xp 0 08:02 1 /bin/other\n");
    attach("hostile", PID).close();
    while (!lease.processes().isEmpty()) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
    Files.writeString(process(PID + 1, "S"), "1-2 rw-s 0 08:02 1 /run/leases/hostile/report\n");
    process(PID + 2, "S"); // cannot be read
    attach("hostile", PID + 1).close();
    attach("hostile", PID + 2).close();
    attach("hostile", PID).close(); // a third one after them
    while (lease.processes().contains(PID)) {
      assertThat(Thread.interrupted()).as("the test's time is over").isFalse();
      LockSupport.parkNanos(100_000);
    }
    assertThat(lease.processes()).containsExactly(PID + 1, PID + 2);
  }

  /** A container's process can name any process of the node, in the node's own pid namespace. */
  @Test
  void processThatNamesAnotherOneOfTheNodePinsNoSlot() throws Exception {
    Path kernelThread = process(PID, "S");
    Files.createFile(kernelThread); // it has no memory
    Files.delete(kernelThread.resolveSibling("exe"));
    Path othersInNamespace = process(PID + 1, "S");
    Path namespace = othersInNamespace.resolveSibling("ns").resolve("pid");
    Files.delete(namespace);
    Files.createSymbolicLink(namespace, Path.of("pid:[1]"));
    Path ofAnotherUser = process(PID + 2, "S"); // neither its mappings nor its links can be read
    Files.delete(ofAnotherUser.resolveSibling("exe"));
    Files.delete(ofAnotherUser.resolveSibling("ns").resolve("pid"));
    long seatsOwn = ProcessHandle.current().pid();
    Path maps = process(seatsOwn, "S");
    Files.writeString(maps, "1-2 rw-s 0 08:02 1 /run/leases/hostile/report\n");
    Files.writeString(maps.resolveSibling("stat"), Files.readString(Path.of("/proc/self/stat")));
    for (long pid : new long[] {PID, PID + 1, PID + 2, seatsOwn}) {
      attach("hostile", pid).close();
    }
    while (!lease.processes().isEmpty()) {
      assertThat(Thread.currentThread().isInterrupted()).as("%s", lease.processes()).isFalse();
      LockSupport.parkNanos(100_000);
    }
    assertThat(lease.visibleProcesses()).isEmpty();
  }

  @Test
  void foreignProcessThatCannotBeReadIsNotTakenForOneOfTheLease() throws Exception {
    Path own = process(PID, "S");
    Files.writeString(own, "1-2 rw-s 0 08:02 1 /run/leases/hostile/report (deleted)\n");
    process(PID + 1, "S"); // its mappings cannot be read
    Files.createFile(process(PID + 2, "S")); // it has no mappings: a kernel thread, or exiting
    Files.writeString(process(PID + 3, "S"), "1-2 rw-s 0 08:02 1 /run/leases/other/report\n");
    for (long pid = PID; pid < PID + 4; pid++) {
      FakeHook ignored = attach("hostile", pid);
    }
    assertThat(lease.processes()).hasSize(4);
    assertThat(lease.visibleProcesses()).containsExactly(PID);
    assertThat(lease.memoryHolders()).isEmpty();
  }

  @Test
  void listsWithoutAnEndAreReadUpToABound() throws Exception {
    ProcFiles files = new ProcFiles(proc);
    Path maps = process(PID, "S");
    byte[] lines =
        "00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/something\n".getBytes(US_ASCII);
    try (RandomAccessFile file = new RandomAccessFile(maps.toFile(), "rw")) {
      for (int i = 0; i < 300_000; i++) {
        file.write(lines);
      }
      file.write("1-2 rw-s 0 08:02 1 /run/leases/hostile/report\n".getBytes(US_ASCII));
    }
    long startNs = NanoClock.SYSTEM.nanoTime();
    assertThat(files.mapping(PID, "/hostile/report")).isEqualTo(ProcessLife.Mapping.UNKNOWN);
    System.out.println(
        "300,000 mappings: read until the bound in ms="
            + TimeUnit.NANOSECONDS.toMillis(NanoClock.SYSTEM.nanoTime() - startNs));
    Path environment = maps.resolveSibling("environ");
    try (RandomAccessFile file = new RandomAccessFile(environment.toFile(), "rw")) {
      file.write("VGPU_LEASE=hostile\0".getBytes(US_ASCII));
      file.setLength(1L << 32);
    }
    assertThat(files.isStartedWith(PID, List.of("VGPU_LEASE=hostile"))).isTrue();
    assertThat(files.isStartedWith(PID, List.of("VGPU_LEASE=other"))).isFalse();
  }

  @Test
  void processWithVeryManyEndedThreadsIsNotReadToItsEnd() throws Exception {
    ProcFiles files = new ProcFiles(proc);
    Path tasks = process(PID, "Z").resolveSibling("task");
    for (int i = 0; i < 256; i++) {
      Path task = Files.createDirectories(tasks.resolve(Long.toString(PID + i)));
      Files.writeString(task.resolve("stat"), stat(PID + i, "Z"));
    }
    assertThat(files.state(PID, 0)).isEqualTo(ProcessLife.State.DEAD);
    Path task = Files.createDirectories(tasks.resolve("1"));
    Files.writeString(task.resolve("stat"), stat(1, "Z"));
    assertThat(files.state(PID, 0)).isEqualTo(ProcessLife.State.ALIVE);
  }
}
