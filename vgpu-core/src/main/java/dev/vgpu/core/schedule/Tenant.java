package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;

/** What a {@link ShareScheduler} knows of one virtual GPU. Confined to the scheduler's owner. */
public final class Tenant {
  final String id;
  final TurnGate gate;

  SharePolicy policy = SharePolicy.BEST_EFFORT;
  PreemptionClass preemptionClass = PreemptionClass.NEARLINE;

  /** The part of the GPU that it is guaranteed, 0 to 1. */
  double guaranteed;

  /** Where it stands in its level's list of runnable tenants; -1: it has no work. */
  int index = -1;

  /** The lag at the moment when the level's clocks showed the marks. */
  double lagNs;

  double guaranteedMark;
  double surplusMark;

  /** Its rate when it had no more work, by which a debt shrinks while it is idle. */
  double idleRate = 1;

  long idleSinceNs;

  /** The GPU time that was charged so far, as its gate counts it. */
  long chargedNs;

  /** The number of its latest turn; the tenant that waits longest has the smallest. */
  long lastTurn;

  int lingerWins;
  int lingerMisses;
  int lingersToSkip;

  /**
   * Makes one that has no work.
   *
   * @param id the virtual GPU's name
   * @param gate what is opened and shut
   * @param request what is granted
   */
  public Tenant(String id, TurnGate gate, VirtualGpuRequest request) {
    this.id = requireNonNull(id, "id");
    this.gate = requireNonNull(gate, "gate");
    setTerms(request);
  }

  /** {@return the virtual GPU's name} */
  public String id() {
    return id;
  }

  void setTerms(VirtualGpuRequest request) {
    policy = request.policy();
    preemptionClass = request.preemptionClass();
    guaranteed = request.computePercent().orElse(0) / 100.0;
  }

  boolean isRunnable() {
    return index >= 0;
  }

  /** Whether it takes time that nobody is guaranteed. */
  boolean takesSurplus() {
    return policy != SharePolicy.FIXED_SHARE;
  }

  boolean isOffline() {
    return preemptionClass == PreemptionClass.OFFLINE;
  }
}
