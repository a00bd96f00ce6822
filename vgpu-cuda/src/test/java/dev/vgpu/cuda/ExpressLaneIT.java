package dev.vgpu.cuda;

import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_TOLD;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.REPORT_SIZE;
import static dev.vgpu.cuda.layout.ShmLayout.SEAT_THREAD_ENDED;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_COUNT;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.cuda.layout.ShmLayout.Express;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import dev.vgpu.cuda.pages.MemoryLedger;
import dev.vgpu.cuda.pages.SharedPage;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * Bursts of an online program beside an offline loop, with both gates open. The offline program
 * stops for each burst by itself, while the seat is stopped, dead, or replaced. Real processes on
 * the emulated GPU.
 */
class ExpressLaneIT {
  private static final Path PROGRAMS = Path.of("target/it-programs").toAbsolutePath();
  private static final int ROUNDS = 3;

  private final List<AutoCloseable> toClose = new ArrayList<>();
  private final Map<String, Map<String, String>> environments = new HashMap<>();
  private Path run;
  private Process seat;

  @BeforeAll
  static void buildPrograms() throws IOException, InterruptedException {
    Path script = Path.of("../samples/cuda-programs/src/main/c/build.sh");
    Process build =
        new ProcessBuilder("sh", script.toString(), PROGRAMS.resolve("classes").toString())
            .inheritIO()
            .start();
    assertThat(build.waitFor()).isZero();
  }

  @BeforeEach
  void openSeat() throws IOException {
    run = Files.createTempDirectory("vgpu");
    toClose.add(
        () -> {
          try (var files = Files.walk(run)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
              Files.deleteIfExists(file);
            }
          }
        });
    seat =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-XX:TieredStopAtLevel=1",
                "-cp",
                System.getProperty("java.class.path"),
                SeatMain.class.getName(),
                run.toString())
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    toClose.add(seat::destroyForcibly);
    BufferedReader output = new BufferedReader(new InputStreamReader(seat.getInputStream(), UTF_8));
    String line = output.readLine();
    while (line != null && !line.equals("ready")) {
      String[] parts = line.split("[ =]", 3);
      environments.computeIfAbsent(parts[0], key -> new HashMap<>()).put(parts[1], parts[2]);
      line = output.readLine();
    }
    assertThat(line).isEqualTo("ready");
  }

  @AfterEach
  void closeAll() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
  }

  private Process start(String lease, String... command) throws IOException {
    List<String> words = new ArrayList<>(List.of(command));
    words.set(0, PROGRAMS.resolve("programs").resolve(command[0]).toString());
    ProcessBuilder builder =
        new ProcessBuilder(words)
            .redirectErrorStream(true)
            .redirectOutput(run.resolve(lease + ".txt").toFile());
    builder.environment().putAll(environments.get(lease));
    Process process = builder.start();
    toClose.add(process::destroyForcibly);
    return process;
  }

  private Process startOffline() throws IOException {
    return start("offline", "spin", "--us=300", "--sync=0", "--seconds=50");
  }

  private Process startOnline() throws IOException {
    return start("online", "burst", "--rate=10", "--kernels=50", "--us=1000", "--seconds=50");
  }

  private SharedPage map(Path file, int size) throws IOException {
    try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ)) {
      return new SharedPage(channel.map(FileChannel.MapMode.READ_ONLY, 0, size));
    }
  }

  private static long launches(SharedPage report) {
    long sum = 0;
    for (int slot = 1; slot < SLOT_COUNT; slot++) {
      sum += report.longAt(MemoryLedger.slotAt(slot) + Slot.LAUNCHES);
    }
    return sum;
  }

  private static void await(BooleanSupplier condition) {
    while (!condition.getAsBoolean()) {
      LockSupport.parkNanos(200_000); // the tests' own time limit ends it
    }
  }

  /**
   * Waits for bursts during which the offline program starts nothing between two looks, both within
   * the burst. Without an express lane there are none: the offline gate is always open, and the
   * GPU's time slices would have served it. If the machine stops this process for long, a burst may
   * not count; a later one does.
   */
  private void awaitStandstills() throws IOException {
    SharedPage report = map(run.resolve("leases/offline/report"), REPORT_SIZE);
    SharedPage express = map(run.resolve("express/GPU-0"), EXPRESS_SIZE);
    int at = EXPRESS_OFFSET + Express.BUSY;
    for (int round = 0; round < ROUNDS; ) {
      await(() -> express.longAt(at) == 0);
      long before = launches(report);
      await(() -> launches(report) > before || express.longAt(at) != 0);
      await(() -> express.longAt(at) != 0);
      LockSupport.parkNanos(10_000_000);
      final long first = launches(report);
      final boolean wasBusy = express.longAt(at) != 0;
      LockSupport.parkNanos(20_000_000);
      if (wasBusy && express.longAt(at) != 0 && launches(report) == first) {
        round++;
      }
    }
    int offline = MemoryLedger.slotAt(1);
    int bit = report.intAt(offline + Slot.YIELDED_TO) - 1;
    assertThat(report.longAt(offline + Slot.YIELDS)).isGreaterThanOrEqualTo(ROUNDS);
    SharedPage online = map(run.resolve("leases/online/grant"), GRANT_SIZE);
    assertThat(online.buffer().get(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit)).isEqualTo((byte) 1);
  }

  private void signal(String name) throws Exception {
    String command = "kill -" + name + " " + seat.pid();
    assertThat(new ProcessBuilder("sh", "-c", command).start().waitFor()).isZero();
  }

  @Test
  void offlineStopsForBurstsWhileTheSeatStandsStill() throws Exception {
    Process offline = startOffline();
    Process online = startOnline();
    awaitStandstills();
    signal("STOP");
    awaitStandstills();
    signal("CONT");
    assertThat(offline.isAlive() && online.isAlive()).isTrue();
  }

  /** As in a container: the GPU's page is missing, but the lease and the socket are there. */
  @Test
  void offlineStopsForOneThatMayNotWriteThePage() throws Exception {
    Path elsewhere = Files.createDirectory(run.resolve("container"));
    for (String name : List.of("hook.sock", "leases")) {
      Files.createSymbolicLink(elsewhere.resolve(name), run.resolve(name));
    }
    environments.get("online").put("VGPU_RUN_DIR", elsewhere.toString());
    final Process offline = startOffline();
    final Process online = startOnline();
    awaitStandstills();
    SharedPage report = map(run.resolve("leases/online/report"), REPORT_SIZE);
    assertThat(report.intAt(MemoryLedger.slotAt(1) + Slot.EXPRESS)).isEqualTo(EXPRESS_TOLD);
    online.destroyForcibly().waitFor();
    SharedPage others = map(run.resolve("leases/offline/report"), REPORT_SIZE);
    long before = launches(others);
    await(() -> launches(others) > before + 20);
    assertThat(offline.isAlive()).isTrue();
  }

  @Test
  void offlineStopsForBurstsWithoutASeatAndUnderTheNextOne() throws Exception {
    final Process offline = startOffline();
    final Process online = startOnline();
    awaitStandstills();
    seat.destroyForcibly().waitFor();
    awaitStandstills();
    Enforcement next = new CudaHookBackend(Map.of()).open(run);
    toClose.add(next);
    EnforcedLease taken = SeatMain.prepare(next, run, "online", PreemptionClass.ONLINE);
    EnforcedLease other = SeatMain.prepare(next, run, "offline", PreemptionClass.OFFLINE);
    taken.open();
    other.open();
    await(() -> taken.yieldsByItself() && other.yieldsByItself());
    awaitStandstills();
    assertThat(taken.processes()).containsExactly(online.pid());
    assertThat(other.processes()).containsExactly(offline.pid());
  }

  /** Its sockets end only when the kernel has taken its memory down: the pages show it before. */
  @Test
  void aKilledSeatShowsOnThePages() throws Exception {
    int word = GRANT_MORE_OFFSET + GrantMore.SEAT_THREAD;
    SharedPage online = map(run.resolve("leases/online/grant"), GRANT_SIZE);
    SharedPage offline = map(run.resolve("leases/offline/grant"), GRANT_SIZE);
    await(() -> online.intAt(word) != 0 && offline.intAt(word) != 0);
    for (SharedPage page : List.of(online, offline)) {
      assertThat(page.intAt(word) & SEAT_THREAD_ENDED).isZero();
      assertThat(page.longAt(GRANT_MORE_OFFSET + GrantMore.SEAT_THREAD_OF)).isEqualTo(seat.pid());
    }
    seat.destroyForcibly().waitFor();
    for (SharedPage page : List.of(online, offline)) {
      assertThat(page.intAt(word) & SEAT_THREAD_ENDED).isNotZero();
    }
    Enforcement next = new CudaHookBackend(Map.of()).open(run);
    toClose.add(next);
    SeatMain.prepare(next, run, "online", PreemptionClass.ONLINE).open();
    assertThat(online.intAt(word) & SEAT_THREAD_ENDED).isZero();
  }

  @Test
  void aKilledBurstHoldsNobody() throws Exception {
    startOffline();
    Process online = startOnline();
    awaitStandstills();
    SharedPage report = map(run.resolve("leases/offline/report"), REPORT_SIZE);
    SharedPage express = map(run.resolve("express/GPU-0"), EXPRESS_SIZE);
    await(() -> express.longAt(EXPRESS_OFFSET + Express.BUSY) != 0);
    signal("STOP"); // now no process clears its bit
    online.destroyForcibly().waitFor();
    long before = launches(report);
    await(() -> launches(report) > before + 20);
    signal("CONT");
    await(() -> express.longAt(EXPRESS_OFFSET + Express.BUSY) == 0);
  }
}
