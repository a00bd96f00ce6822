package dev.vgpu.nvml.mps;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Translates a request to MPS's terms. */
final class MpsTerms {
  private static final int MOST_CLIENTS_BEFORE_VOLTA = 16;
  private static final int MOST_CLIENTS = 48;
  private static final int MOST_CLIENTS_SINCE_CUDA_13_1 = 60;
  private static final int VOLTA = 70;
  private static final int CUDA_13_1 = 131;
  private static final int ALL_PERCENT = 100;
  private static final long MEBIBYTE = 1 << 20;
  private static final Pattern VERSION = Pattern.compile("(\\d{1,4})\\.(\\d)");

  private MpsTerms() {}

  /**
   * {@return how many processes may use one GPU's MPS at once, as the vendor documents it} Source:
   * "Client-Server Connection Limits" in NVIDIA's guide to MPS, which states 16 contexts before
   * Volta, 48 since, and 60 from CUDA 13.1 on. The driver counts contexts; a program with several
   * takes more.
   *
   * @param properties the GPU's properties; unknown ones default to recent hardware with an older
   *     driver
   */
  static int mostClients(Map<String, String> properties) {
    if (number(properties.getOrDefault("compute_capability", "")).orElse(VOLTA) < VOLTA) {
      return MOST_CLIENTS_BEFORE_VOLTA;
    }
    return number(properties.getOrDefault("cuda_version", "")).orElse(0) >= CUDA_13_1
        ? MOST_CLIENTS_SINCE_CUDA_13_1
        : MOST_CLIENTS;
  }

  /** {@return why MPS cannot serve a GPU in its current mode} */
  static Optional<String> obstacle(Map<String, String> properties) {
    return "prohibited".equals(properties.get("compute_mode"))
        ? Optional.of(
            "its compute mode is prohibited: no program may run on it; as root: nvidia-smi -c"
                + " DEFAULT (or EXCLUSIVE_PROCESS, for MPS alone)")
        : Optional.empty();
  }

  /** {@return a version such as 13.1 as the number 131} */
  private static OptionalInt number(String text) {
    Matcher matcher = VERSION.matcher(text);
    return matcher.matches()
        ? OptionalInt.of(
            10 * Integer.parseInt(matcher.group(1)) + text.charAt(matcher.start(2)) - '0')
        : OptionalInt.empty();
  }

  /** {@return why MPS can never enforce a request} */
  static Optional<String> unable(VirtualGpuRequest request) {
    if (request.policy() == SharePolicy.BURST_SHARE) {
      return Optional.of(
          "limits programs but guarantees nothing: ask for FIXED_SHARE or"
              + " BEST_EFFORT, or for turns");
    }
    return Optional.empty();
  }

  /** {@return the percent of the GPU's SMs that its programs may use} */
  static int activeThreadPercent(VirtualGpuRequest request) {
    return request.computePercent().orElse(ALL_PERCENT);
  }

  /** {@return the variables that limit a client from its start on} */
  static Map<String, String> environment(VirtualGpuRequest request) {
    // The hook is exact. This limit is rounded up, so that the hook's message comes first.
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
