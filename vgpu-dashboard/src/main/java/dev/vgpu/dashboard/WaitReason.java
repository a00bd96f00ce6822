package dev.vgpu.dashboard;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuState;
import java.util.List;
import java.util.Optional;

/**
 * Which tenants a tenant waits for, and why, as far as the pool tells.
 *
 * @param on the tenants that have what it waits for; empty if unknown
 * @param why the reason in words
 */
record WaitReason(List<String> on, String why) {
  private static final int MOST_NAMED = 3;

  /**
   * A tenant at one look.
   *
   * @param lease the tenant
   * @param isBusy whether it had GPU time since the look before, or one of its calls runs
   */
  record Seen(GpuLease lease, boolean isBusy) {}

  /** {@return whether a tenant waits: its calls or threads, or the tenant as a whole} */
  static boolean waits(GpuLease lease, Optional<GpuState> state) {
    return lease.usage().waiting() > 0
        || lease.isSuspended()
        || state.map(gpu -> gpu.heldBack().contains(lease.id())).orElse(false);
  }

  /**
   * {@return why a tenant waits}
   *
   * @param lease the tenant that waits
   * @param state the state of its GPU, if known
   * @param others all tenants of its GPU
   */
  static WaitReason of(GpuLease lease, Optional<GpuState> state, List<Seen> others) {
    if (lease.impaired().isPresent()) {
      return new WaitReason(List.of(), lease.impaired().get());
    }
    if (lease.isSuspended()) {
      boolean isReclaim = state.map(gpu -> gpu.suspended().contains(lease.id())).orElse(false);
      return new WaitReason(
          List.of(),
          isReclaim
              ? "suspended: its memory is off the GPU, which ran short of it"
              : "suspended: its memory is off the GPU until a user resumes it");
    }
    List<GpuLease> busy =
        others.stream()
            .filter(other -> other.isBusy() && !other.lease().id().equals(lease.id()))
            .map(Seen::lease)
            .toList();
    if (state.map(gpu -> gpu.heldBack().contains(lease.id())).orElse(false)) {
      return new WaitReason(ids(busy), "held back: it is at its fixed share");
    }
    List<GpuLease> urgent = busy.stream().filter(other -> isUrgent(other)).toList();
    if (lease.request().preemptionClass() == PreemptionClass.OFFLINE && !urgent.isEmpty()) {
      return new WaitReason(ids(urgent), "offline: it yields to more urgent work");
    }
    Optional<String> holder =
        state.flatMap(GpuState::holder).filter(other -> !other.equals(lease.id()));
    if (holder.isPresent()) {
      return new WaitReason(List.of(holder.get()), "for its turn");
    }
    return new WaitReason(
        ids(busy), "for its turn, or for memory of its quota: which of the two is unknown");
  }

  private static boolean isUrgent(GpuLease lease) {
    return lease.request().preemptionClass() != PreemptionClass.OFFLINE;
  }

  private static List<String> ids(List<GpuLease> leases) {
    return leases.stream().map(GpuLease::id).limit(MOST_NAMED).toList();
  }
}
