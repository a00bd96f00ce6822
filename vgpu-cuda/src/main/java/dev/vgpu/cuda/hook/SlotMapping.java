package dev.vgpu.cuda.hook;

import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcessLife.Mapping;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether a slot's process has its lease's report page mapped, by the kernel's list of mappings. A
 * process can make that list as long as it likes. So the list is read without the lease's lock, on
 * no thread that serves others, and less often the longer it takes. Safe for use by several
 * threads.
 */
final class SlotMapping {
  private static final Logger log = LoggerFactory.getLogger(SlotMapping.class);

  /** Reading one process's mappings takes at most one part in this many of a thread's time. */
  private static final int PAUSES = 16;

  private final long pid;
  private volatile Reading last = new Reading(Mapping.UNKNOWN, 0, 0, false);
  private volatile boolean underWay;

  SlotMapping(long pid) {
    this.pid = pid;
  }

  private record Reading(Mapping mapping, long beganNs, long tookNs, boolean wasRead) {
    boolean isSince(long ns) {
      return wasRead && beganNs - ns >= 0;
    }

    boolean isLately(long nowNs, long leastNs) {
      return wasRead && nowNs - beganNs - tookNs < Math.max(leastNs, PAUSES * tookNs);
    }
  }

  /** Reads the list, unless it was read a short while ago. */
  synchronized Mapping read(NanoClock clock, Supplier<Mapping> read) {
    long beganNs = clock.nanoTime();
    if (!last.isLately(beganNs, 0)) {
      Mapping mapping = read.get();
      last = new Reading(mapping, beganNs, clock.nanoTime() - beganNs, true);
    }
    return last.mapping;
  }

  /**
   * {@return the result of a reading that began since a time; {@code UNKNOWN} if there is none}
   * Starts a reading if there is none, and again after a pause.
   */
  Mapping since(long sinceNs, long nowNs, long pauseNs, Executor reader, Runnable read) {
    Reading now = last;
    boolean isSince = now.isSince(sinceNs);
    if (!underWay && !now.isLately(nowNs, isSince ? pauseNs : 0)) {
      underWay = true;
      try {
        reader.execute(
            () -> {
              try {
                read.run();
              } finally {
                underWay = false;
              }
            });
      } catch (RejectedExecutionException | OutOfMemoryError e) {
        underWay = false; // the seat is given up, or no thread can be started; tried again later
        log.debug("the mappings of a process cannot be read now: pid={}", pid, e);
      }
    }
    return isSince ? now.mapping : Mapping.UNKNOWN;
  }
}
