package dev.vgpu.cuda.hook;

import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Set;

/** What is wrong with a process's reports, told once for each kind. Guarded by the lease's lock. */
final class Suspicions {
  /** Kinds of reports that cannot be true. */
  enum Kind {
    /** Its GPU time fell. */
    BACKWARDS,
    /** More GPU time than time has passed. */
    TOO_MUCH,
    /**
     * More work in flight, or more threads waiting, than a process can have; or fewer than none.
     */
    ABSURD_COUNT,
    /** It says that it works, and shows no life. */
    SILENT
  }

  private final long pid;
  private final Set<Kind> told = EnumSet.noneOf(Kind.class);
  private final List<String> untold = new ArrayList<>(0);

  Suspicions(long pid) {
    this.pid = pid;
  }

  /** Notes what is wrong, if it is the first time. */
  void add(Kind kind, String what) {
    if (told.add(kind)) {
      untold.add("process " + pid + " " + what);
    }
  }

  /** Moves what was not told yet into a list. */
  void drainTo(List<String> reasons) {
    if (!untold.isEmpty()) {
      reasons.addAll(untold);
      untold.clear();
    }
  }
}
