package dev.vgpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.GpuDriver;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** One JVM under two leases, on the emulated GPU; this JVM is the seat. */
class TenantsIT {
  private static final MemorySize CONTEXT = MemorySize.ofMebibytes(64);

  @TempDir private Path run;
  private final BlockingQueue<Integer> processesOfB = new LinkedBlockingQueue<>();

  private final class Listener implements EnforcedLease.Listener {
    private final boolean ofB;

    Listener(boolean ofB) {
      this.ofB = ofB;
    }

    @Override
    public void wanted() {}

    @Override
    public void drained() {}

    @Override
    public void processes(int attached) {
      if (ofB) {
        processesOfB.add(attached);
      }
    }
  }

  private EnforcedLease prepare(Enforcement by, String id, long mebibytes) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(mebibytes))
            .policy(SharePolicy.FIXED_SHARE)
            .computePercent(50)
            .build();
    TestGpu gpu = TestGpu.emulated();
    return by.prepare(id, directory, gpu, request, new Listener(id.equals("b")));
  }

  private List<String> settings(EnforcedLease lease) {
    GpuDriver driver = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
    List<String> settings = new ArrayList<>();
    driver.environment().forEach((name, value) -> settings.add(name + "=" + value));
    settings.add("VGPU_EMULATOR_DIR=" + run.resolve("emulator"));
    settings.add("VGPU_CUDA_DRIVER=" + driver.cudaLibrary());
    lease
        .environment()
        .forEach((name, text) -> settings.add(name + "=" + text.replace("${LD_PRELOAD}", "")));
    return settings;
  }

  private Process guest(EnforcedLease a, EnforcedLease b) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"));
    command.add("-cp");
    command.add(System.getProperty("java.class.path"));
    command.add(TenantsGuest.class.getName());
    command.addAll(settings(a));
    command.add("--");
    command.addAll(settings(b));
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  @Test
  void jvmUnderTwoLeasesIsChargedAndCountedForEach() throws Exception {
    try (Enforcement seat = new CudaHookBackend(Map.of()).open(run)) {
      EnforcedLease a = prepare(seat, "a", 512);
      EnforcedLease b = prepare(seat, "b", 256);
      a.open();
      b.open();
      Process guest = guest(a, b);
      List<String> lines = new ArrayList<>();
      try (BufferedReader output = guest.inputReader(StandardCharsets.UTF_8)) {
        readUntil("left b", output, lines);
        // The guest lives on, but b holds nothing of it any more.
        awaitNone();
        assertThat(b.memoryUsed()).as("%s", lines).isEqualTo(MemorySize.ZERO);
        assertThat(a.memoryUsed().bytes()).isPositive().isLessThanOrEqualTo(CONTEXT.bytes() * 8);
        assertThat(b.launches()).isEqualTo(7);
        try (OutputStream input = guest.getOutputStream()) {
          input.write('\n');
        }
        output.lines().forEach(lines::add);
      } finally {
        guest.destroyForcibly();
      }
      assertThat(guest.waitFor()).as("%s", lines).isZero();
      assertThat(a.launches()).isEqualTo(40);
      assertThat(lines)
          .contains(
              "quota of b 256 MiB",
              "too much 2",
              "left of b 0",
              "a has all of its own true",
              "freed in the scope of a 0, refunded to a 0",
              "refunded to b 256 MiB",
              "unbound is the first's true",
              "after leaving 800",
              "bind after leaving IllegalStateException",
              "told true");
    }
  }

  private static void readUntil(String last, BufferedReader output, List<String> lines) {
    try {
      String line = output.readLine();
      while (line != null && !line.equals(last)) {
        lines.add(line);
        line = output.readLine();
      }
      assertThat(line).as("%s", lines).isEqualTo(last);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private void awaitNone() throws InterruptedException {
    Integer attached = processesOfB.poll(30, TimeUnit.SECONDS);
    while (attached != null && attached != 0) {
      attached = processesOfB.poll(30, TimeUnit.SECONDS);
    }
    assertThat(attached).isZero();
  }
}
