package dev.vgpu.simulation;

import dev.vgpu.core.admission.Admission;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.Optional;

/** Asks the pool's own admission which tenants it would refuse. */
public final class MixAdmission {
  private MixAdmission() {}

  /**
   * A tenant that the pool refuses.
   *
   * @param index its place among the requests
   * @param reason what does not fit, in words
   * @param isForShare whether its share does not fit; otherwise its quota does not
   */
  public record Refusal(int index, String reason, boolean isForShare) {}

  /**
   * Admits tenants to an empty GPU, one after the other.
   *
   * @param gpu the GPU's name in the reason
   * @param memory the memory that tenants can have
   * @param oversubscriptionPercent the most that quotas may add up to, in percent of {@code memory}
   * @param requests the tenants' requests, in the order in which they join
   * @return the first tenant that is refused; empty if all fit
   */
  public static Optional<Refusal> firstRefusal(
      String gpu,
      MemorySize memory,
      int oversubscriptionPercent,
      List<VirtualGpuRequest> requests) {
    Admission admission = new Admission(gpu, memory, oversubscriptionPercent);
    for (int i = 0; i < requests.size(); i++) {
      VirtualGpuRequest request = requests.get(i);
      if (!admission.fits(request)) {
        int freePercent = admission.freePercent(request.preemptionClass());
        boolean isForShare = request.computePercent().orElse(0) > freePercent;
        return Optional.of(new Refusal(i, admission.lack(request).orElse(""), isForShare));
      }
      admission.take(request);
    }
    return Optional.empty();
  }
}
