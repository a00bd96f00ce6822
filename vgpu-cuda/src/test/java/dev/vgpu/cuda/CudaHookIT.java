package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** The hook itself in real processes, on the emulated GPU. */
class CudaHookIT {
  private static final Path PROGRAMS = Path.of("target/it-programs").toAbsolutePath();
  private static final MemorySize QUOTA = MemorySize.ofMebibytes(512);

  private final List<AutoCloseable> toClose = new ArrayList<>();
  private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
  private Path run;
  private Enforcement seat;

  private final class Listener implements EnforcedLease.Listener {
    @Override
    public void wanted() {
      events.add("wanted");
    }

    @Override
    public void drained() {
      events.add("drained");
    }

    @Override
    public void processes(int attached) {
      events.add("processes " + attached);
    }
  }

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
    seat = new CudaHookBackend(Map.of()).open(run);
    toClose.add(seat);
  }

  @AfterEach
  void closeAll() throws Exception {
    for (int i = toClose.size() - 1; i >= 0; i--) {
      toClose.get(i).close();
    }
  }

  private EnforcedLease prepare(String id) throws IOException {
    return prepare(seat, id);
  }

  private EnforcedLease prepare(Enforcement by, String id) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .memory(QUOTA)
            .policy(SharePolicy.FIXED_SHARE)
            .computePercent(50)
            .build();
    return by.prepare(id, directory, TestGpu.emulated(), request, new Listener());
  }

  private Map<String, String> environment(EnforcedLease lease) {
    Map<String, String> environment = new HashMap<>();
    GpuDriver driver = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
    environment.putAll(driver.environment());
    environment.put("VGPU_EMULATOR_DIR", run.resolve("emulator").toString());
    environment.put("VGPU_CUDA_DRIVER", driver.cudaLibrary().toString());
    environment.put("VGPU_NVML", driver.nvmlLibrary().toString());
    lease
        .environment()
        .forEach((name, text) -> environment.put(name, text.replace("${LD_PRELOAD}", "")));
    return environment;
  }

  private Process start(EnforcedLease lease, Path output, String... command) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output.toFile());
    builder.environment().putAll(environment(lease));
    Process process = builder.start();
    toClose.add(process::destroyForcibly);
    return process;
  }

  private void expect(String event) throws InterruptedException {
    List<String> seen = new ArrayList<>();
    String next;
    do {
      next = events.poll(30, TimeUnit.SECONDS);
      seen.add(String.valueOf(next));
    } while (next != null && !next.equals(event));
    assertThat(next).as("events until now: %s", seen).isEqualTo(event);
  }

  @Test
  void aProgramRunsInTurnsWithinItsQuota() throws Exception {
    EnforcedLease lease = prepare("a");
    Path output = run.resolve("spin.txt");
    Process spin =
        start(
            lease,
            output,
            PROGRAMS.resolve("programs/spin").toString(),
            "--us=500",
            "--count=3000",
            "--hold=64MiB");
    expect("processes 1");
    lease.contended(true);
    int turns = 0;
    while (spin.isAlive()) {
      if (!lease.hasWork()) {
        spin.waitFor(1, TimeUnit.MILLISECONDS);
        continue;
      }
      lease.open();
      spin.waitFor(20, TimeUnit.MILLISECONDS);
      events.removeIf(event -> !event.startsWith("processes"));
      if (!lease.shut()) {
        expect("drained");
      }
      turns++;
      if (turns == 2) {
        // The context plus the program's allocations.
        assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ofMebibytes(128));
      }
    }
    assertThat(spin.waitFor()).as(Files.readString(output)).isZero();
    expect("processes 0");
    assertThat(turns).isGreaterThan(3);
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
    assertThat(lease.launches()).isGreaterThanOrEqualTo(3000);
    assertThat(lease.gpuTimeNs(Long.MAX_VALUE)).isBetween(1_350_000_000L, 2_100_000_000L);
  }

  @Test
  void aProgramGetsItsQuotaAndNotAByteMore() throws Exception {
    EnforcedLease lease = prepare("a");
    lease.open();
    Path output = run.resolve("hoard.txt");
    Process hoard = start(lease, output, PROGRAMS.resolve("programs/hoard").toString());
    assertThat(hoard.waitFor()).as(Files.readString(output)).isZero();
    expect("processes 0");
    assertThat(lease.deniedAllocations()).isPositive();
    assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void whatAKilledProgramHeldIsBackAtOnce() throws Exception {
    EnforcedLease lease = prepare("a");
    lease.open();
    for (int round = 0; round < 5; round++) {
      Path output = run.resolve("killed.txt");
      Process spin =
          start(lease, output, PROGRAMS.resolve("programs/spin").toString(), "--hold=100MiB");
      expect("processes 1");
      expect("wanted");
      long before = lease.launches();
      for (int tries = 0; tries < 3_000 && spin.isAlive() && lease.launches() == before; tries++) {
        TimeUnit.MILLISECONDS.sleep(10); // it has announced itself, and launches now
      }
      spin.destroyForcibly().waitFor();
      expect("processes 0");
      assertThat(lease.launches()).as(Files.readString(output)).isGreaterThan(before);
      assertThat(lease.memoryUsed()).isEqualTo(MemorySize.ZERO);
      assertThat(lease.hasWork()).isFalse();
    }
  }

  @Test
  void aProgramGoesOnUnderTheNextSeat() throws Exception {
    EnforcedLease lease = prepare("a");
    lease.open();
    Path output = run.resolve("spin.txt");
    Process spin =
        start(
            lease,
            output,
            PROGRAMS.resolve("programs/spin").toString(),
            "--us=500",
            "--seconds=1000",
            "--hold=64MiB");
    expect("processes 1");
    expect("wanted");
    seat.close();
    events.clear();
    Enforcement next = new CudaHookBackend(Map.of()).open(run);
    toClose.add(next);
    EnforcedLease taken = prepare(next, "a");
    assertThat(taken.processes()).containsExactly(spin.pid());
    assertThat(taken.memoryUsed()).isEqualTo(MemorySize.ofMebibytes(128));
    long before = taken.launches();
    taken.open();
    for (int tries = 0; tries < 3_000 && taken.launches() == before; tries++) {
      TimeUnit.MILLISECONDS.sleep(10);
    }
    assertThat(taken.launches()).isGreaterThan(before);
    spin.destroy(); // it ends by itself when it is told to
    assertThat(spin.waitFor()).as(Files.readString(output)).isZero();
    expect("processes 0");
    assertThat(taken.memoryUsed()).isEqualTo(MemorySize.ZERO);
  }

  @Test
  void aJvmPutsItselfUnderALease() throws Exception {
    EnforcedLease lease = prepare("a");
    lease.open();
    Map<String, String> environment = environment(lease);
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.addAll(List.of("-cp", System.getProperty("java.class.path"), Guest.class.getName()));
    environment.forEach((name, text) -> command.add(name + "=" + text));
    Path output = run.resolve("guest.txt");
    Process guest =
        new ProcessBuilder(command)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    toClose.add(guest::destroyForcibly);
    assertThat(guest.waitFor()).as(Files.readString(output)).isZero();
    assertThat(Files.readAllLines(output))
        .contains("cuInit 0", "cuDeviceTotalMem 0 " + QUOTA.bytes(), "again IllegalStateException")
        .contains("libcuda.so is held true", "cuda is held true");
    expect("processes 1");
    expect("processes 0");
  }

  /** A JVM that uses CUDA; only its first line knows of vgpu. */
  static final class Guest {
    private Guest() {}

    /**
     * Uses CUDA a little.
     *
     * @param arguments the lease's variables as NAME=value
     */
    public static void main(String[] arguments) {
      Map<String, String> environment = new HashMap<>();
      for (String argument : arguments) {
        String[] parts = argument.split("=", 2);
        environment.put(parts[0], parts[1]);
      }
      new CudaHookBackend(Map.of()).attachThisProcess(environment);

      NativeLibrary cuda = NativeLibrary.getInstance("libcuda.so.1");
      Memory number = new Memory(Long.BYTES);
      System.out.println("cuInit " + cuda.getFunction("cuInit").invokeInt(new Object[] {0}));
      int device = 0;
      int code = cuda.getFunction("cuDeviceTotalMem_v2").invokeInt(new Object[] {number, device});
      System.out.println("cuDeviceTotalMem " + code + " " + number.getLong(0));
      long held = Pointer.nativeValue(cuda.getFunction("cuInit"));
      for (String name : List.of("libcuda.so", "cuda")) {
        Pointer found = NativeLibrary.getInstance(name).getFunction("cuInit");
        System.out.println(name + " is held " + (Pointer.nativeValue(found) == held));
      }
      try {
        new CudaHookBackend(Map.of()).attachThisProcess(environment);
      } catch (IllegalStateException e) {
        System.out.println("again IllegalStateException");
      }
    }
  }
}
