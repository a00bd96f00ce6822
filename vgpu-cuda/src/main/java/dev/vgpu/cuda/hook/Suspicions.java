package dev.vgpu.cuda.hook;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** Implausible reports of a process, each kind told once. Guarded by the lease's lock. */
final class Suspicions {
  /** Kinds of reports that cannot be true. */
  enum Kind {
    /** Its GPU time fell. */
    BACKWARDS,
    /** Its GPU time rose by more than the time that passed. */
    TOO_MUCH,
    /**
     * A count of batches or waiting threads that is negative, or higher than a process can have.
     */
    ABSURD_COUNT,
    /** It reports work, but no heartbeat. */
    SILENT
  }

  private final long pid;
  private final Set<Kind> told = EnumSet.noneOf(Kind.class);
  private final List<String> untold = new ArrayList<>(0);

  Suspicions(long pid) {
    this.pid = pid;
  }

  /** Notes an implausible report, if it is the first of its kind. */
  void add(Kind kind, String what) {
    if (told.add(kind)) {
      untold.add("process " + pid + " " + what);
    }
  }

  /** Moves new ones into a list. */
  void drainTo(List<String> reasons) {
    if (!untold.isEmpty()) {
      reasons.addAll(untold);
      untold.clear();
    }
  }
}
