package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/** What a {@link ShareScheduler} knows of one virtual GPU. Confined to the scheduler's owner. */
public final class Tenant {
  private static final long NEVER = Long.MAX_VALUE;

  final String id;
  final TurnGate gate;

  SharePolicy policy = SharePolicy.BEST_EFFORT;
  PreemptionClass preemptionClass = PreemptionClass.NEARLINE;

  /** The part of the GPU that it is guaranteed, 0 to 1. */
  double guaranteed;

  // ---- kept by its level

  /** Where it stands in its level's list of runnable tenants; -1: it has no work. */
  int index = -1;

  /** Those that it is like; null: not looked for since its terms changed. */
  @Nullable LagGroup group;

  /** Where it stands in its group's heap. */
  int heapIndex = -1;

  /** While runnable: its lag, less what all of its group have accrued. */
  double key;

  /** While not runnable: its lag when it had no more work. */
  double lagNs;

  /** Its rate when it had no more work, by which a debt shrinks while it is idle. */
  double idleRate = 1;

  long idleSinceNs;

  /** It is not idle, but waits for other GPUs. */
  boolean away;

  /** The number of its latest turn; the tenant that waits longest has the smallest. */
  long lastTurn;

  // ---- its gate

  /** The scheduler has seen it, and it has not gone. */
  boolean known;

  /** What its gate was last read to have used. */
  long readNs;

  /** How much use would be believed now. */
  double creditNs;

  /**
   * What it said that it used since the last booking, as far as believed; and what of that counts.
   */
  double saidNs;

  double usedNs;

  /** The largest lump in which it told lately what it used. */
  double lumpNs;

  /** What it used in all, as far as believed. */
  double bookedNs;

  /**
   * For how long it was taken to have work since it last told that it used more, and how much of
   * that time was its own.
   */
  double countedNs;

  double ownNs;

  /** The same of lately, and what it told of it; so how often it has work when it might: 0 to 1. */
  double countedLatelyNs;

  double saidLatelyNs;
  double busyPart = 1;

  /** It has so often no work that it would not get its part of slices. */
  boolean pauses;

  /**
   * What it uses after its gate was shut, lately; negative: not known. And what it had used when it
   * was shut.
   */
  double overrunNs = -1;

  double bookedAtShutNs;

  /** What its level's clock said when its turn began or was last renewed, and what it had used. */
  double turnBegan;

  double bookedAtTurnNs;

  /** What it was owed then. */
  double lagAtTurnNs;

  /** Since when the work of the turn before its own is done. */
  double aloneSinceNs;

  /** What was booked though it did not tell it. */
  double prepaidNs;

  boolean open;

  /** Shut, while its running work ends. */
  boolean draining;

  /** The running work has ended, as was told. */
  boolean drained;

  /** Its running work was asked to end. */
  boolean preempted;

  /** What its gate was last told. */
  boolean contended;

  boolean withOthers;
  boolean obeys = true;

  /** Its gate has told idleness that was not looked into yet. */
  boolean idleTold;

  /** Has work, and its gate is shut so that others get what it had too much. */
  boolean heldBack;

  /** Its turn is at the expense of more urgent tenants. */
  boolean floorTurn;

  long deadlineNs;
  long abandonedCheckNs;
  long askAgainNs;

  // ---- its hand-overs and its pauses

  /** What opening its gate costs the GPU; negative: not known. */
  double handOverNs = -1;

  long lingerUntilNs = NEVER;
  double lingerMarkNs;
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
    group = null;
  }

  boolean isRunnable() {
    return index >= 0;
  }

  /** Whether its gate is open, or its work has not ended yet. */
  boolean isActive() {
    return open || draining;
  }

  /** Whether it takes time that nobody is guaranteed. */
  boolean takesSurplus() {
    return policy != SharePolicy.FIXED_SHARE;
  }

  boolean isOffline() {
    return preemptionClass == PreemptionClass.OFFLINE;
  }
}
