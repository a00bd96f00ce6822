package dev.vgpu.core.book;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Predicate;

/**
 * The tenants that may not start for now because memory was reclaimed from them, and their waiting
 * requests. Never contains online tenants. Guarded by the {@link LeaseTable}'s lock.
 */
final class HeldBack {
  private final Map<String, String> reasons = new HashMap<>();
  private final List<PendingRequest> parked = new ArrayList<>();

  void hold(String name, String reason) {
    reasons.put(name, reason);
  }

  /** Why a tenant may not start; empty if it may. */
  Optional<String> because(VirtualGpuRequest request) {
    return request.preemptionClass() == PreemptionClass.ONLINE
        ? Optional.empty()
        : Optional.ofNullable(reasons.get(request.name()))
            .map(
                reason ->
                    "held back until memory has been free again for a while: name="
                        + request.name()
                        + ": "
                        + reason);
  }

  void park(PendingRequest waiting) {
    parked.add(waiting);
  }

  /** Removes a request; returns whether it was parked. */
  boolean giveUp(PendingRequest waiting) {
    return parked.remove(waiting);
  }

  void failAll(Predicate<PendingRequest> which, RuntimeException because) {
    for (PendingRequest waiting : List.copyOf(parked)) {
      if (which.test(waiting)) {
        parked.remove(waiting);
        waiting.fail(because);
      }
    }
  }

  /** Stops holding a name back. Returns the requests that waited for that, in order. */
  List<PendingRequest> letBack(String name) {
    reasons.remove(name);
    List<PendingRequest> free =
        parked.stream().filter(waiting -> because(waiting.asked.request()).isEmpty()).toList();
    parked.removeAll(free);
    return free;
  }
}
