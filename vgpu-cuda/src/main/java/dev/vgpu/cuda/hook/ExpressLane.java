package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_BITS;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_OFFSET;

import dev.vgpu.VgpuException;
import dev.vgpu.cuda.layout.ShmLayout.Express;
import dev.vgpu.cuda.pages.ExpressFiles;
import dev.vgpu.cuda.pages.ReportPage;
import dev.vgpu.cuda.pages.Wake;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The express lane of one GPU: a page on which the processes of urgent leases announce that they
 * are busy, one bit each, and which the processes of offline leases obey. The seat assigns the
 * bits, and clears those of processes that can no longer clear them. Otherwise it is not involved.
 *
 * <p>A process that can write the page can also truncate its file, and an access to the mapping
 * then crashes every process that maps it. So only processes of the seat's own user may write it;
 * they could kill each other with a signal anyway. For processes in containers and of other users,
 * the seat sets the bits (see {@link LeaseExpress#announce}). If the file is truncated all the
 * same, the lane is given up: no bit counts any more, and only the seat's grants decide.
 *
 * <p>Safe for use by several threads. Lock order: a lease's lock first, this lock last.
 */
final class ExpressLane {
  private static final Logger log = LoggerFactory.getLogger(ExpressLane.class);

  private static final int WATCHED = EXPRESS_OFFSET + Express.WATCHED;
  private static final int BUSY = EXPRESS_OFFSET + Express.BUSY;

  private final String name;
  private final ReportPage page;
  private final Wake wake;
  private final List<LeaseExpress> obeying = new ArrayList<>();

  /** The lease that owns a bit, or owned it last. */
  private final @Nullable String[] holders = new String[EXPRESS_BITS];

  /** Bits that are assigned to processes, or may be. */
  private long given;

  private int next;
  private boolean lost;

  private ExpressLane(String name, ReportPage page, Wake wake, long given) {
    this.name = name;
    this.page = page;
    this.wake = wake;
    this.given = given;
  }

  /**
   * Opens a GPU's lane, or creates it.
   *
   * @param runDirectory the node's
   * @param gpu the GPU's id
   * @param wake wakes processes that wait for a bit to change
   * @param watched whether offline processes wait for a bit, in order to stop inside a kernel
   * @throws VgpuException if its file cannot be created
   */
  static ExpressLane open(Path runDirectory, String gpu, Wake wake, boolean watched) {
    String name = ExpressFiles.name(gpu);
    try {
      ReportPage page = ExpressFiles.open(runDirectory, name);
      page.setInt(WATCHED, watched ? 1 : 0);
      return new ExpressLane(name, page, wake, ExpressFiles.bitsGiven(runDirectory, name));
    } catch (IOException e) {
      throw new VgpuException(
          "cannot make a GPU's express lane: " + e.getMessage() + " directory=" + runDirectory, e);
    }
  }

  /** {@return the name of its file} */
  String name() {
    return name;
  }

  /** {@return false after the lane was given up or closed} */
  synchronized boolean works() {
    return !lost;
  }

  /** Adds a lease that obeys the lane whenever it is told to. */
  synchronized void join(LeaseExpress lease) {
    obeying.add(lease);
    lease.mask(lease.obeys() && !lost ? given : 0);
  }

  synchronized void leave(LeaseExpress lease) {
    obeying.remove(lease);
  }

  /** Updates a lease that was told to obey, or not to. */
  synchronized void changed(LeaseExpress lease) {
    lease.mask(lease.obeys() && !lost ? given : 0);
  }

  /**
   * {@return a bit for a process; -1 if none is free}
   *
   * @param lease its lease's id
   */
  synchronized int take(String lease) {
    if (lost || given == -1L) {
      return -1;
    }
    // Round robin: the last holder of a freed bit may still be alive, and clear it once more.
    while ((given >>> next & 1) != 0) {
      next = (next + 1) % EXPRESS_BITS;
    }
    int bit = next;
    next = (next + 1) % EXPRESS_BITS;
    given |= 1L << bit;
    holders[bit] = lease;
    tellAll();
    return bit;
  }

  /** Notes that an earlier seat assigned a bit to a lease. */
  synchronized void adopt(int bit, String lease) {
    holders[bit] = lease;
  }

  /** {@return the lease that owns a bit, or owned it last; null: none, or no such bit} */
  synchronized @Nullable String holder(int bit) {
    return bit < 0 || bit >= EXPRESS_BITS ? null : holders[bit];
  }

  /** Frees a bit. */
  synchronized void giveBack(int bit) {
    given &= ~(1L << bit);
    tellAll();
    clear(bit);
  }

  /** Sets the bit of a process that may not write the page, and renews its heartbeat. */
  synchronized void announce(int bit, long nowNs) {
    if (lost) {
      return;
    }
    try {
      // Before the bit: a bit with an old heartbeat does not count.
      page.setLong(EXPRESS_OFFSET + Express.BEAT_NS + bit * Long.BYTES, nowNs);
      long seen = page.longAt(BUSY);
      while ((seen & 1L << bit) == 0) {
        if (page.compareAndSet(BUSY, seen, seen | 1L << bit)) {
          wake(bit); // an offline process may stop its kernel
          return;
        }
        seen = page.longAt(BUSY);
      }
    } catch (ReportPage.LostException | InternalError e) {
      giveUp(e);
    }
  }

  private void wake(int bit) {
    wake.all(page, BUSY + (bit < Integer.SIZE ? 0 : Integer.BYTES));
  }

  /** Clears the bit of a process that cannot clear it, because it is dead or stopped. */
  synchronized void clear(int bit) {
    if (lost) {
      return;
    }
    try {
      long seen = page.longAt(BUSY);
      while ((seen & 1L << bit) != 0) {
        if (page.compareAndSet(BUSY, seen, seen & ~(1L << bit))) {
          wake(bit);
          return;
        }
        seen = page.longAt(BUSY);
      }
    } catch (ReportPage.LostException | InternalError e) {
      giveUp(e);
    }
  }

  /** {@return the bits that are set} */
  synchronized long busy() {
    try {
      return lost ? 0 : page.longAt(BUSY) & given;
    } catch (ReportPage.LostException | InternalError e) {
      giveUp(e);
      return 0;
    }
  }

  private void tellAll() {
    for (LeaseExpress lease : obeying) {
      lease.mask(lease.obeys() && !lost ? given : 0);
    }
  }

  private void giveUp(Throwable cause) {
    lost = true;
    tellAll();
    log.warn(
        "a tenant truncated a GPU's express lane; only the seat's grants apply now: file={} ({})",
        name,
        cause.getMessage());
  }

  /** Stops assigning and clearing bits; assigned bits stay assigned. */
  synchronized void close() {
    lost = true;
    page.close();
  }
}
