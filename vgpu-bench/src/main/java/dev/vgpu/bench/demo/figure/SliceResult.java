package dev.vgpu.bench.demo.figure;

import java.util.ArrayList;
import java.util.List;

/**
 * The measurements of one slice. Immutable. Times are nanoseconds since the slice's measured window
 * began.
 *
 * @param phase the phase that the slice belongs to
 * @param lengthNs the length of the window
 * @param zeroNs when the schedule began; 0 without one
 * @param tenants each tenant's counts within the window
 * @param spans which tenant used the device when, clipped to the window
 * @param results the outcomes of the requests
 */
public record SliceResult(
    Phase phase,
    long lengthNs,
    long zeroNs,
    List<PhaseSnapshot.Tenant> tenants,
    List<Span> spans,
    List<RequestResult> results) {

  /**
   * {@return the difference of two snapshots of one phase}
   *
   * @param phase which phase
   * @param before the snapshot at the start of the window
   * @param after the snapshot at its end
   * @param zeroNs when the schedule began, in nanoseconds since the first snapshot
   * @param results the outcomes of the requests
   */
  public static SliceResult between(
      Phase phase,
      PhaseSnapshot before,
      PhaseSnapshot after,
      long zeroNs,
      List<RequestResult> results) {
    List<PhaseSnapshot.Tenant> tenants = new ArrayList<>();
    for (int i = 0; i < after.tenants().size(); i++) {
      tenants.add(difference(before.tenants().get(i), after.tenants().get(i)));
    }
    long fromNs = before.elapsedNs();
    long toNs = after.elapsedNs();
    List<Span> spans =
        after.spans().stream()
            .filter(span -> span.endNs() > fromNs && span.startNs() < toNs)
            .map(
                span ->
                    new Span(
                        span.tenant(),
                        Math.max(span.startNs(), fromNs) - fromNs,
                        Math.min(span.endNs(), toNs) - fromNs))
            .toList();
    return new SliceResult(phase, toNs - fromNs, zeroNs, tenants, spans, results);
  }

  private static PhaseSnapshot.Tenant difference(
      PhaseSnapshot.Tenant before, PhaseSnapshot.Tenant after) {
    return new PhaseSnapshot.Tenant(
        after.name(),
        after.percent(),
        after.items() - before.items(),
        after.calls() - before.calls(),
        after.preemptions() - before.preemptions(),
        after.memoryPeakBytes(),
        after.quotaBytes());
  }
}
