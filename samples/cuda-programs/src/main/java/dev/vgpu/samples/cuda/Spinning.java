package dev.vgpu.samples.cuda;

import com.sun.jna.Pointer;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * Keeps a device busy, and reports the share that it got. {@link #stop} may be called from another
 * thread.
 */
final class Spinning {
  private static final double NS_PER_S = 1e9;

  private final long kernelUs;
  private final int grid;
  private final long syncEvery;
  private final long seconds;
  private final long count;
  private final long holdBytes;
  private final boolean json;
  private volatile boolean stopped;
  private long done;
  private long wallNs;
  private long worstLaunchNs;

  Spinning(SpinArguments arguments) {
    this.kernelUs = arguments.number("us");
    this.grid = (int) Math.max(1, arguments.number("grid"));
    this.syncEvery = arguments.number("sync");
    this.seconds = arguments.number("seconds");
    this.count = arguments.number("count");
    this.holdBytes = arguments.number("hold-mib") << 20;
    this.json = arguments.isSet("json");
  }

  /** The options with their defaults. */
  static Map<String, String> options() {
    Map<String, String> options = new LinkedHashMap<>();
    options.put("us", "1000");
    options.put("grid", "1");
    options.put("sync", "1");
    options.put("seconds", "10");
    options.put("count", "0");
    options.put("hold-mib", "0");
    options.put("json", "");
    return options;
  }

  static String help() {
    return """
          --us N        what a kernel takes, in microseconds (default 1000)
          --grid N      blocks of a kernel (default 1)
          --sync N      wait for the GPU after that many; 0: only at the end (default 1)
          --seconds N   how long to go on (default 10)
          --count N     stop after that many kernels; 0: go by the time (default 0)
          --hold-mib N  hold that much memory meanwhile (default 0)
          --json        print one JSON object
          --help        show this help
        """;
  }

  void stop() {
    stopped = true;
  }

  /** Runs until the time is over or {@link #stop} is called. */
  void run(Cuda cuda) throws CudaException {
    long held = holdBytes == 0 ? 0 : cuda.allocate(holdBytes);
    Pointer kernel = cuda.kernel("vgpu_spin");
    Cuda.Parameter parameter = new Cuda.Parameter(kernelUs * 1000);
    long startNs = NanoClock.nowNs();
    while (!stopped && !isOver(startNs)) {
      long beforeNs = NanoClock.nowNs();
      cuda.launch(kernel, grid, parameter);
      worstLaunchNs = Math.max(worstLaunchNs, NanoClock.nowNs() - beforeNs);
      done++;
      if (syncEvery > 0 && done % syncEvery == 0) {
        cuda.synchronize();
      }
    }
    cuda.synchronize();
    wallNs = NanoClock.nowNs() - startNs;
    if (held != 0) {
      cuda.free(held);
    }
  }

  private boolean isOver(long startNs) {
    return count > 0 ? done >= count : NanoClock.nowNs() - startNs >= seconds * NS_PER_S;
  }

  /** {@return the result, in one line} */
  String result(String device) {
    double share = wallNs == 0 ? 0 : done * kernelUs * 1e5 / wallNs;
    return String.format(
        Locale.ROOT,
        json
            ? "{\"program\":\"Spin\",\"device\":\"%s\",\"kernel_us\":%d,\"kernels\":%d,"
                + "\"seconds\":%.6f,\"share_percent\":%.3f,\"launch_us\":{\"max\":%.3f}}"
            : "%s: kernels of %d us: %d in %.3f s, %.2f %% of the time; worst launch %.1f us",
        device,
        kernelUs,
        done,
        wallNs / NS_PER_S,
        share,
        worstLaunchNs / 1e3);
  }
}
