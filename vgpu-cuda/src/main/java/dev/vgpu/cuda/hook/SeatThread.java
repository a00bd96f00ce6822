package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.cuda.pages.RobustWords;
import dev.vgpu.cuda.pages.Wake;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Makes the end of the server's thread show on the grant page of each lease. Threads at a shut gate
 * then go on at once if the seat's holder is killed, instead of when they miss its heartbeat.
 * Confined to that thread, except for {@link #changed}.
 */
final class SeatThread {
  private final Wake wake;
  private final long pid = ProcessHandle.current().pid();
  private final Set<GrantPage> told = new HashSet<>();
  private @Nullable RobustWords words;
  private volatile boolean stale = true;

  SeatThread(Wake wake) {
    this.wake = wake;
  }

  /** Notes that leases were added or removed. Any thread may call it. */
  void changed() {
    stale = true;
  }

  /**
   * Follows the changes, as soon as the system calls for it can be made.
   *
   * @param grants the pages of all leases
   */
  void follow(Supplier<List<GrantPage>> grants) {
    if (!stale) {
      return;
    }
    RobustWords list = words;
    if (list == null) {
      list = wake.ofThisThread(GrantPage.SEAT_THREAD).orElse(null);
      words = list;
    }
    if (list == null) {
      return;
    }
    stale = false; // first: a change from now on is followed next time
    Set<GrantPage> present = Set.copyOf(grants.get());
    for (GrantPage grant : List.copyOf(told)) {
      if (!present.contains(grant)) {
        grant.disowned(list);
        told.remove(grant);
      }
    }
    for (GrantPage grant : present) {
      if (told.add(grant)) {
        grant.owned(list, pid);
      }
    }
  }

  /** Shows the end of the thread, which serves no more. */
  void ended() {
    if (words != null) {
      words.close();
    }
  }
}
