package dev.vgpu.cli.command;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Option;

/** The options for a virtual GPU's share of time and its class. Mutable; picocli sets them. */
public final class ShareOptions {
  @Option(
      names = "--compute",
      paramLabel = "PERCENT",
      description = "The share of the GPU's time, 1 to 100. Default: best effort.")
  private @Nullable Integer compute;

  @Option(
      names = "--policy",
      paramLabel = "fixed|burst|best-effort",
      description = "How the share binds. Default: fixed with --compute, else best-effort.")
  private @Nullable SharePolicy policy;

  @Option(
      names = "--class",
      paramLabel = "online|nearline|offline",
      description = "Who yields to whom. Default: nearline.")
  private PreemptionClass preemptionClass = PreemptionClass.NEARLINE;

  /**
   * {@return the request, with the given options added}
   *
   * @throws IllegalArgumentException if the share is not within 1 to 100
   */
  public VirtualGpuRequest.Builder addTo(VirtualGpuRequest.Builder request) {
    SharePolicy usual = compute == null ? SharePolicy.BEST_EFFORT : SharePolicy.FIXED_SHARE;
    if (compute != null && (compute < 1 || compute > 100)) {
      throw new IllegalArgumentException("--compute is not within 1 to 100: " + compute);
    }
    if (compute != null) {
      request.computePercent(compute);
    }
    return request.policy(policy == null ? usual : policy).preemptionClass(preemptionClass);
  }
}
