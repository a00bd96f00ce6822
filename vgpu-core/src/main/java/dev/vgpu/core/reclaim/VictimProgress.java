package dev.vgpu.core.reclaim;

import java.util.Set;

/** How far up the ladder a tenant is. Confined to its planner's thread. */
final class VictimProgress {
  static final long NOT = Long.MIN_VALUE;

  /** When its owner was asked. */
  long askedNs = NOT;

  boolean answered;

  /** When its suspension was begun. */
  long suspendingNs = NOT;

  /** Why it cannot be suspended; empty: it may be. */
  String suspendFailure = "";

  /** When it was told to end. */
  long endingNs = NOT;

  /** When it was killed. */
  long killedNs = NOT;

  /** The processes that were told to end. */
  Set<Long> ended = Set.of();

  /** Those are gone; what is there now was started after them. */
  boolean gone;

  /** Since when it has been seen suspended. */
  long suspendedSinceNs = NOT;

  /** When it was told to go on. */
  long resumingNs = NOT;

  /** It is not told to go on before. */
  long resumeNotBeforeNs = NOT;

  /** Reclaim is over: the next one begins at the foot of the ladder. */
  void rest() {
    askedNs = NOT;
    answered = false;
    suspendFailure = "";
  }

  /** It may start again. */
  void forgive() {
    endingNs = NOT;
    killedNs = NOT;
    gone = false;
  }
}
