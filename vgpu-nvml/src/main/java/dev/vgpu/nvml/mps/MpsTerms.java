package dev.vgpu.nvml.mps;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import java.util.Map;
import java.util.Optional;

/** What a request means to MPS. */
final class MpsTerms {
  /** What the driver allows from compute capability 7.5 on; before it is less. */
  static final int MOST_CLIENTS = 48;

  private static final int MOST_CLIENTS_BEFORE_TURING = 16;
  private static final int ALL_PERCENT = 100;
  private static final long MEBIBYTE = 1 << 20;

  private MpsTerms() {}

  /**
   * {@return how many processes may use one GPU's MPS at once} Newer drivers allow more on newer
   * GPUs, which is not counted on.
   *
   * @param computeCapability for example {@code 9.0}; empty: not known
   */
  static int mostClients(Optional<String> computeCapability) {
    return computeCapability.filter(text -> number(text) < 75).isPresent()
        ? MOST_CLIENTS_BEFORE_TURING
        : MOST_CLIENTS;
  }

  private static int number(String text) {
    String[] parts = text.split("\\.", 2);
    try {
      return Integer.parseInt(parts[0]) * 10 + (parts.length > 1 ? Integer.parseInt(parts[1]) : 0);
    } catch (NumberFormatException e) {
      return Integer.MAX_VALUE; // what is not known is new
    }
  }

  /** {@return why MPS could never hold what is asked} */
  static Optional<String> unable(VirtualGpuRequest request) {
    if (request.policy() == SharePolicy.BURST_SHARE) {
      return Optional.of(
          "bounds what a program may use and guarantees nothing beyond: ask for FIXED_SHARE or"
              + " BEST_EFFORT, or for turns");
    }
    return Optional.empty();
  }

  /** {@return the percent of the GPU's units that its programs may use} */
  static int activeThreadPercent(VirtualGpuRequest request) {
    return request.computePercent().orElse(ALL_PERCENT);
  }

  /** {@return the variables that bound a client, the moment that it starts} */
  static Map<String, String> environment(VirtualGpuRequest request) {
    // The hook is exact; this is rounded up, so that the quota's own message comes first.
    long mebibytes = (request.memory().bytes() + MEBIBYTE - 1) / MEBIBYTE;
    return Map.of(
        "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE",
        Integer.toString(activeThreadPercent(request)),
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
        "0=" + mebibytes + "M",
        "CUDA_MPS_CLIENT_PRIORITY",
        request.preemptionClass() == PreemptionClass.OFFLINE ? "1" : "0");
  }
}
