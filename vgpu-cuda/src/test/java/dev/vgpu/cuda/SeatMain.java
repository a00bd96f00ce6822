package dev.vgpu.cuda;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.GpuDriver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;

/**
 * A seat in its own JVM, so that it can be stopped and killed. One online and one offline lease on
 * one emulated GPU; both gates stay open.
 */
final class SeatMain {
  private SeatMain() {}

  /**
   * Opens both gates, prints {@code CLASS NAME=VALUE} for each variable of each lease and {@code
   * ready}, and waits for the end of its input.
   *
   * @param arguments the run directory
   * @throws IOException if opening the seat fails
   */
  public static void main(String[] arguments) throws IOException {
    Path run = Path.of(arguments[0]);
    try (Enforcement seat = new CudaHookBackend(System.getenv()).open(run)) {
      for (PreemptionClass which :
          new PreemptionClass[] {PreemptionClass.ONLINE, PreemptionClass.OFFLINE}) {
        String id = which.name().toLowerCase(Locale.ROOT);
        EnforcedLease lease = prepare(seat, run, id, which);
        lease.open();
        environment(run, lease)
            .forEach((name, text) -> System.out.println(id + " " + name + "=" + text));
      }
      System.out.println("ready");
      while (System.in.read() >= 0) {
        // Serves until its input ends.
      }
    }
  }

  static EnforcedLease prepare(
      Enforcement seat, Path run, String id, PreemptionClass preemptionClass) throws IOException {
    Path directory = Files.createDirectories(run.resolve("leases").resolve(id));
    VirtualGpuRequest request =
        VirtualGpuRequest.builder()
            .memory(MemorySize.ofMebibytes(512))
            .policy(SharePolicy.BEST_EFFORT)
            .preemptionClass(preemptionClass)
            .build();
    return seat.prepare(id, directory, TestGpu.emulated(), request, new SilentListener());
  }

  private static Map<String, String> environment(Path run, EnforcedLease lease) {
    GpuDriver driver = ServiceLoader.load(GpuDriver.class).findFirst().orElseThrow();
    Map<String, String> environment = new HashMap<>(driver.environment());
    environment.put("VGPU_EMULATOR_DIR", run.resolve("emulator").toString());
    environment.put("VGPU_CUDA_DRIVER", driver.cudaLibrary().toString());
    environment.put("VGPU_NVML", driver.nvmlLibrary().toString());
    lease
        .environment()
        .forEach((name, text) -> environment.put(name, text.replace(":${LD_PRELOAD}", "")));
    return environment;
  }
}
