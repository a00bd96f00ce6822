package dev.vgpu.core.reclaim;

import java.util.Set;

/** A tenant's position on the reclaim ladder. Confined to its planner's thread. */
final class VictimProgress {
  static final long NOT = Long.MIN_VALUE;

  /** When its owner was asked. */
  long askedNs = NOT;

  boolean answered;

  /** When its suspension started. */
  long suspendingNs = NOT;

  /** Why it cannot be suspended; empty if it may be. */
  String suspendFailure = "";

  /** When it was told to terminate. */
  long endingNs = NOT;

  /** When it was killed. */
  long killedNs = NOT;

  /** The processes that were told to terminate. */
  Set<Long> ended = Set.of();

  /** Whether all of {@link #ended} are gone; its present processes were started later. */
  boolean gone;

  /** When it was first seen suspended. */
  long suspendedSinceNs = NOT;

  /** When its resumption started. */
  long resumingNs = NOT;

  /** It is not resumed before this time. */
  long resumeNotBeforeNs = NOT;

  /** Reclaim is over; the next one starts at the bottom of the ladder. */
  void rest() {
    askedNs = NOT;
    answered = false;
    suspendFailure = "";
  }

  /** Clears its end, so that it may start again. */
  void forgive() {
    endingNs = NOT;
    killedNs = NOT;
    gone = false;
  }
}
