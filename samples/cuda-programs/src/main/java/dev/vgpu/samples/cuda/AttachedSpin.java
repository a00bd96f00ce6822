package dev.vgpu.samples.cuda;

import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuUsage;
import java.util.Arrays;
import java.util.Locale;
import java.util.Map;

/**
 * {@link Spin} in a JVM that puts itself under a virtual GPU before anything in it has loaded the
 * CUDA driver. Code that uses the driver afterwards does not change: here {@link Cuda}, elsewhere
 * ONNX Runtime, JCuda or DJL.
 */
public final class AttachedSpin {
  private AttachedSpin() {}

  /**
   * Runs it.
   *
   * @param args see {@code --help}
   */
  public static void main(String[] args) {
    if (Arrays.asList(args).contains("--help")) {
      System.out.println("Usage: AttachedSpin [OPTIONS]");
      System.out.println("  --memory SIZE memory quota (default 1GiB)");
      System.out.println("  --compute N   share of the GPU's time in percent (default 50)");
      System.out.println("  --policy P    fixed_share or burst_share (default fixed_share)");
      System.out.println("  --class C     online, nearline or offline (default nearline)");
      System.out.print(Spinning.help());
      return;
    }
    int exitCode = run(args);
    if (exitCode != 0) {
      System.exit(exitCode);
    }
  }

  private static int run(String... args) {
    Spinning spinning;
    VirtualGpuRequest request;
    try {
      Map<String, String> options = Spinning.options();
      options.putAll(
          Map.of("memory", "1GiB", "compute", "50", "policy", "fixed_share", "class", "nearline"));
      SpinArguments arguments = new SpinArguments(options, args);
      spinning = new Spinning(arguments);
      request = request(arguments);
    } catch (IllegalArgumentException e) {
      System.err.println("AttachedSpin: " + e.getMessage());
      System.err.println("Run it with --help to see what can be given.");
      return 2;
    }
    return spin(spinning, request);
  }

  private static VirtualGpuRequest request(SpinArguments arguments) {
    return VirtualGpuRequest.builder()
        .name("attached-spin")
        .memory(MemorySize.fromString(arguments.text("memory")))
        .computePercent(Math.toIntExact(arguments.number("compute")))
        .policy(SharePolicy.valueOf(arguments.text("policy").toUpperCase(Locale.ROOT)))
        .preemptionClass(PreemptionClass.valueOf(arguments.text("class").toUpperCase(Locale.ROOT)))
        .build();
  }

  private static int spin(Spinning spinning, VirtualGpuRequest request) {
    try (GpuPool pool = GpuPool.open();
        VirtualGpu gpu = pool.acquire(request)) {
      gpu.attachThisJvm();
      int exitCode = Spin.spin(spinning, "AttachedSpin");
      GpuUsage usage = gpu.usage();
      System.err.println(
          "under "
              + gpu.id()
              + ": GPU time "
              + usage.gpuTime().toMillis()
              + " ms, launches "
              + usage.launches());
      return exitCode;
    } catch (VgpuException | IllegalStateException e) {
      System.err.println("AttachedSpin: " + e.getMessage());
      return 1;
    }
  }
}
