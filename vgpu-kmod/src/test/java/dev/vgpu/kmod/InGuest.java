package dev.vgpu.kmod;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.ProcessAttachment;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * Tests the backend with the real module: the program that {@code ./vgpu kmod test} runs in its
 * virtual machine. Prints {@code ok} or {@code FAIL} for each check.
 */
public final class InGuest {
  private static final long MIB = 1 << 20;

  private final BlockingQueue<Integer> told = new LinkedBlockingQueue<>();

  private InGuest() {}

  /**
   * Runs the checks.
   *
   * @param arguments none
   */
  public static void main(String[] arguments) throws Exception {
    new InGuest().run();
  }

  private static void check(String name, boolean fine) {
    System.out.println((fine ? "ok   " : "FAIL ") + "backend-" + name);
  }

  private static String kernel(String file) throws IOException {
    return Files.readString(Path.of(file)).strip();
  }

  /** {@return the first output line of a static program that the JVM has started} */
  private static String answer(Process program) throws IOException {
    return new BufferedReader(
            new InputStreamReader(program.getInputStream(), StandardCharsets.UTF_8))
        .readLine();
  }

  private boolean toldOf(int processes) throws InterruptedException {
    Integer count = told.poll(60, TimeUnit.SECONDS);
    while (count != null && count != processes) {
      count = told.poll(60, TimeUnit.SECONDS);
    }
    return count != null;
  }

  private void run() throws Exception {
    KmodBackend backend = new KmodBackend();
    check("available", backend.status().isAvailable());
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .name("job")
            .policy(SharePolicy.BURST_SHARE)
            .computePercent(25)
            .memory(MemorySize.ofBytes(64 * MIB))
            .preemptionClass(PreemptionClass.OFFLINE)
            .build();
    Path directory = Files.createTempDirectory("lease");
    try (Enforcement enforcement = backend.open(directory)) {
      EnforcedLease lease =
          enforcement.prepare("job-1", directory, new TestGpu(), request, new Told());
      String tenant = "/sys/kernel/config/vgpu/job-1/";
      check("weight", kernel(tenant + "weight").equals("25"));
      check("class", kernel(tenant + "class").equals("offline"));
      ProcessAttachment attachment = backend.attachThisProcess(lease.environment());
      check("moved", kernel("/proc/self/cgroup").equals("0::/vgpu/job-1"));
      check("told-of-itself", toldOf(1));
      Process first = new ProcessBuilder("/client", "take", "40").start();
      check("takes", "took".equals(answer(first)));
      check("used", lease.memoryUsed().bytes() == 40 * MIB);
      check("files-can-be-taken", new ForeignFiles(Path.of("/")).obstacle(first.pid()).isEmpty());
      check("processes", lease.processes().contains(first.pid()));
      Process second = new ProcessBuilder("/client", "take", "40").start();
      check("refused", "refused".equals(answer(second)) && lease.deniedAllocations() == 1);
      check("no-less-than-used", !lease.tryResize(sized(request, 8), 0));
      check("more", lease.tryResize(sized(request, 128), 0));
      check("new-limit", kernel(tenant + "limit").equals(Long.toString(128 * MIB)));
      attachment.close();
      check("moved-back", kernel("/proc/self/cgroup").equals("0::/"));
      lease.close();
      check("ends-with-its-last-process", kernel(tenant + "limit").equals("0"));
      first.getOutputStream().close();
      check("told-of-the-end", first.waitFor() == 0 && toldOf(0));
      offlineYieldsToOnline(enforcement, request);
    }
  }

  private void offlineYieldsToOnline(Enforcement enforcement, VirtualGpuRequest request)
      throws Exception {
    VirtualGpuRequest urgent = request.toBuilder().preemptionClass(PreemptionClass.ONLINE).build();
    try (EnforcedLease offline = prepare(enforcement, "offline-1", request);
        EnforcedLease online = prepare(enforcement, "online-1", urgent);
        InputStream device = Files.newInputStream(Path.of("/dev/vgpu"))) {
      Process yields = launched(offline, "/client", "run", "2");
      check("offline-runs", "runs".equals(answer(yields)));
      Path refuses = Path.of("/sys/module/nvidia/parameters/refuses");
      Files.writeString(refuses, "1000000000");
      Process works = launched(online, "/client", "take", "8");
      check("online-works", "took".equals(answer(works)));
      check("refused-stop-is-named", refusalIsNamed(device, offline));
      check("refusal-is-not-the-online-lease's", online.preemptionReason().isEmpty());
      Files.writeString(refuses, "0");
      check("offline-is-stopped", reports(device, "offline-1 ", "stopped 1"));
      check("no-reason-against-it", offline.preemptionReason().isEmpty());
      works.getOutputStream().close();
      check("online-ends", works.waitFor() == 0);
      check("offline-is-given-back", reports(device, "offline-1 ", "stopped 0"));
      yields.getOutputStream().close();
      check("offline-ends", yields.waitFor() == 0);
    }
  }

  private EnforcedLease prepare(Enforcement enforcement, String id, VirtualGpuRequest request)
      throws IOException {
    return enforcement.prepare(
        id, Files.createTempDirectory("lease"), new TestGpu(), request, new Told());
  }

  private static Process launched(EnforcedLease lease, String... program) throws IOException {
    List<String> words = new ArrayList<>(lease.launcher());
    words.addAll(List.of(program));
    ProcessBuilder builder = new ProcessBuilder(words);
    builder.environment().putAll(lease.environment());
    return builder.start();
  }

  /** Reads what the module reports, until a tenant is as said; a read waits for a change. */
  private static boolean reports(InputStream device, String tenant, String state)
      throws IOException {
    byte[] lines = new byte[4096];
    for (int size = device.read(lines); size > 0; size = device.read(lines)) {
      String text = new String(lines, 0, size, StandardCharsets.US_ASCII);
      if (text.lines().anyMatch(line -> line.startsWith(tenant) && line.endsWith(state))) {
        return true;
      }
    }
    return false;
  }

  /** Reads until the lease gives the reason; each of the module's tries is a change. */
  private static boolean refusalIsNamed(InputStream device, EnforcedLease offline)
      throws IOException {
    byte[] lines = new byte[4096];
    while (offline.preemptionReason().filter(why -> why.contains("refuses")).isEmpty()) {
      if (device.read(lines) <= 0) {
        return false;
      }
    }
    return true;
  }

  private static VirtualGpuRequest sized(VirtualGpuRequest request, long mebibytes) {
    return request.toBuilder().memory(MemorySize.ofMebibytes(mebibytes)).build();
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
