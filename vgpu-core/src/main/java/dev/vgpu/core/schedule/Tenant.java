package dev.vgpu.core.schedule;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.GpuWork;
import org.jspecify.annotations.Nullable;

/** What a {@link ShareScheduler} knows about one virtual GPU. Confined to the scheduler's owner. */
public final class Tenant {
  /** The time over which it is estimated how often a tenant has work. */
  static final double WORK_MEMORY_NS = 200_000_000;

  private static final long NEVER = Long.MAX_VALUE;

  final String id;
  final TurnGate gate;

  SharePolicy policy = SharePolicy.BEST_EFFORT;
  PreemptionClass preemptionClass = PreemptionClass.NEARLINE;

  /** The part of the GPU that it is guaranteed, 0 to 1. */
  double guaranteed;

  // ---- kept by its level

  /** Its position in its level's list of runnable tenants; -1 if it has no work. */
  int index = -1;

  /** Its group; null if not looked up since its terms changed. */
  @Nullable LagGroup group;

  /** Its position in its group's heap. */
  int heapIndex = -1;

  /** While runnable: its lag, less what every tenant of its group has accrued. */
  double key;

  /** While not runnable: its lag when its work ended. */
  double lagNs;

  /** Its rate when its work ended; a debt shrinks at this rate while it is idle. */
  double idleRate = 1;

  long idleSinceNs;

  /**
   * While runnable: by how much its level's clock was behind when its work began, which is not its
   * time. Negative if it had lost more than that when it last left.
   */
  double beforeNs;

  /** While not runnable: time by which the clock was behind in its own work, not made up for. */
  double lostNs;

  /** Whether it waits for other GPUs rather than being idle. */
  boolean away;

  /** The number of its latest turn; the tenant that has waited longest has the smallest. */
  long lastTurn;

  // ---- its gate

  /** Whether the scheduler has seen it and it has not left. */
  boolean known;

  /** Its gate's total use at the last reading. */
  long readNs;

  /** How much use would be believed now. */
  double creditNs;

  /** What it has reported since the last booking, as far as believed; then the part that counts. */
  double saidNs;

  double usedNs;

  /** The largest lump in which it recently reported its use. */
  double lumpNs;

  /** Its total use, as far as believed. */
  double bookedNs;

  /**
   * For how long it was taken to have work since its last report, and how much of that was its own.
   */
  double countedNs;

  double ownNs;

  /** The same over recent time, and what it reported in it; then how often it has work, 0 to 1. */
  double countedLatelyNs;

  double saidLatelyNs;
  double busyPart = 1;

  /** What else was known of its work when it last reported use. */
  GpuWork work = GpuWork.UNKNOWN;

  /** How much of its recent use was launch-bound; the total of that, as far as counted. */
  double boundLatelyNs;

  long readBoundNs;

  /** The total of time stopped inside kernels, as far as counted. */
  long readStoppedNs;

  /** How often it was stopped so, as far as counted. */
  long readStops;

  final Pace pace = new Pace();

  /** Its recent use after its gate was shut, negative if not known; its total when it was shut. */
  double overrunNs = -1;

  /** How far recent single ones were from it, on average. */
  double overrunOffNs;

  double bookedAtShutNs;

  /** When its work would have ended after its gate was shut, if it was as much as usually. */
  long endExpectedNs;

  /** Its level's clock, and its total, when its turn began or was last renewed. */
  double turnBegan;

  double bookedAtTurnNs;

  /** What it was owed then. */
  double lagAtTurnNs;

  /** When the work of the turn before its own had ended. */
  double aloneSinceNs;

  /** What was charged in advance, because it did not report it. */
  double prepaidNs;

  boolean open;

  /** Whether its gate is shut and its running work has not ended. */
  boolean draining;

  /** Whether the end of its running work was reported. */
  boolean drained;

  /** Whether its running work was asked to end. */
  boolean preempted;

  /** The last values that its gate was told. */
  boolean contended;

  boolean withOthers;
  boolean obeys = true;

  /** Whether its gate has reported idleness that was not examined yet. */
  boolean idleTold;

  /** Whether its turn is at the expense of more urgent tenants. */
  boolean floorTurn;

  long deadlineNs;
  long abandonedCheckNs;

  /** When its gate is asked again for its running work, and whether it said that there is none. */
  long askAgainNs;

  boolean endSeen;

  /** Whether its gate is asked for work, and when it first had some that was not reported. */
  boolean watched;

  long unheardNs = NEVER;

  /** When the observer was last told that it stood still, and how often it was not told since. */
  long stallToldNs = NEVER;

  int stallsUntold;

  // ---- its hand-overs and its pauses

  /** The GPU time that opening its gate costs; negative if not known. */
  double handOverNs = -1;

  long lingerUntilNs = NEVER;
  double lingerMarkNs;
  int lingerWins;
  int lingerMisses;
  int lingersToSkip;

  /**
   * Creates a tenant without work.
   *
   * @param id the virtual GPU's id
   * @param gate the gate that is opened and shut
   * @param request the granted terms
   */
  public Tenant(String id, TurnGate gate, VirtualGpuRequest request) {
    this.id = requireNonNull(id, "id");
    this.gate = requireNonNull(gate, "gate");
    setTerms(request);
  }

  /** {@return the virtual GPU's id} */
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

  /** Whether it takes time that is guaranteed to no tenant. */
  boolean takesSurplus() {
    return policy != SharePolicy.FIXED_SHARE;
  }

  /** The part of the GPU that it uses while its gate is open, without launch-bound time. */
  double useAlone() {
    return countedLatelyNs < WORK_MEMORY_NS / 2
        ? 1
        : Math.max(0, saidLatelyNs - boundLatelyNs) / countedLatelyNs;
  }

  boolean isOffline() {
    return preemptionClass == PreemptionClass.OFFLINE;
  }

  /**
   * Learns from what it used after its gate was shut.
   *
   * @param mostNs how much counts at most
   * @return how much of it counts
   */
  double ranOver(double mostNs) {
    double overNs = bookedNs - bookedAtShutNs;
    if (overrunNs < 0) {
      overrunNs = overNs;
    }
    double countedNs = Math.min(overNs, mostNs);
    overrunOffNs += (Math.abs(overNs - overrunNs) - overrunOffNs) / 8;
    overrunNs += (countedNs - overrunNs) / 8;
    return countedNs;
  }

  /**
   * How fast a tenant launches kernels: in its own turns, and while other gates are open too.
   * Confined to the scheduler's owner.
   */
  static final class Pace {
    /** The time of turns over which the pace is averaged. */
    private static final double MEMORY_NS = 200_000_000;

    /** The time of turns, and the number of launches in them, from which on the pace is known. */
    private static final double LEAST_NS = 20_000_000;

    private static final double LEAST_LAUNCHES = 20;

    private static final long NONE = Long.MIN_VALUE;

    /** The time of recent turns, and the launches in them. */
    private double turnsNs;

    private double turnsLaunches;

    /** The turn that is going on, or the last one, whose launches may not all be reported yet. */
    private long turnBeganNs = NONE;

    private long turnFirst;
    private double turnNs;

    /** Since the last look: the time beside others, and the launches in it. */
    private double besideNs;

    private double besideLaunches;

    /** Its launches when it was last alone, or at the last look; not meaningful while alone. */
    private long besideFirst;

    private boolean alone;

    /**
     * Records the beginning of a turn while other tenants wait.
     *
     * @param launches the tenant's launches so far
     */
    void turnBegan(long launches, long nowNs) {
      if (turnNs > 0 && launches >= turnFirst) {
        double keep = Math.max(0, 1 - turnNs / MEMORY_NS);
        turnsNs = keep * turnsNs + turnNs;
        turnsLaunches = keep * turnsLaunches + (launches - turnFirst);
      }
      turnBeganNs = nowNs;
      turnFirst = launches;
      turnNs = 0;
    }

    /** Records the end of a turn in which the tenant had work all the time. */
    void turnEnded(long nowNs) {
      turnNs = turnBeganNs == NONE ? 0 : nowNs - turnBeganNs;
      turnBeganNs = NONE;
    }

    /** Forgets the latest turn: the tenant may have been idle in it without reporting that. */
    void turnForgotten() {
      turnBeganNs = NONE;
      turnNs = 0;
    }

    /** Whether its pace in its own turns is known. */
    boolean isKnown() {
      return turnsNs >= LEAST_NS && turnsLaunches >= LEAST_LAUNCHES;
    }

    /** Begins to count its launches beside others. */
    void looked(long launches) {
      turnForgotten();
      besideNs = 0;
      besideLaunches = 0;
      besideFirst = launches;
      alone = false;
    }

    /** Records that it had work and an open gate beside others. */
    void passed(double passedNs) {
      besideNs += passedNs;
    }

    boolean isAlone() {
      return alone;
    }

    /** Does not count its launches from here on: no other tenant has work. */
    void isAlone(long launches) {
      if (!alone) {
        besideLaunches += launches - besideFirst;
        alone = true;
      }
    }

    /** Counts its launches again. */
    void isBeside(long launches) {
      besideFirst = launches;
      alone = false;
    }

    /** For how long it has had work beside others since the last look. */
    double besideNs() {
      return besideNs;
    }

    /** Its pace beside others since the last look, as a part of that in its own turns. */
    double kept(long launches) {
      double all = besideLaunches + (alone ? 0 : launches - besideFirst);
      return all / besideNs / (turnsLaunches / turnsNs);
    }
  }
}
