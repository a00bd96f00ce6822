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
 * are busy, each by a bit, and which those of offline leases obey. The seat gives the bits out, and
 * clears those of processes that cannot do so any more; it is in no process's way otherwise.
 *
 * <p>Whoever may write the page may also cut its file short, and an access to it then ends a
 * process that maps it. So it is written by processes of the seat's own user alone, which could end
 * each other by a signal as well; for those in containers and of other users the seat sets the bits
 * (see {@link LeaseExpress#announce}). If it is cut short all the same, the lane is given up:
 * nobody has a bit any more, and the seat's words alone count.
 *
 * <p>Safe for use by several threads. Its lock is the last one that is taken, after a lease's.
 */
final class ExpressLane {
  private static final Logger log = LoggerFactory.getLogger(ExpressLane.class);

  private static final int WATCHED = EXPRESS_OFFSET + Express.WATCHED;
  private static final int BUSY = EXPRESS_OFFSET + Express.BUSY;

  private final String name;
  private final ReportPage page;
  private final Wake wake;
  private final List<LeaseExpress> obeying = new ArrayList<>();

  /** Whose a bit is, or was last. */
  private final @Nullable String[] holders = new String[EXPRESS_BITS];

  /** Bits that processes have, or may have. */
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
   * Opens a GPU's lane, or makes it.
   *
   * @param runDirectory the node's
   * @param gpu the GPU's id
   * @param wake wakes who waits for a bit to be cleared
   * @param watched whether offline processes wait for a bit to be set, to stop inside a kernel then
   * @throws VgpuException if its file cannot be made
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

  /** {@return its file's name} */
  String name() {
    return name;
  }

  /** {@return whether it works} */
  synchronized boolean works() {
    return !lost;
  }

  /** A lease obeys from now on, whenever it is told to. */
  synchronized void join(LeaseExpress lease) {
    obeying.add(lease);
    lease.mask(lease.obeys() && !lost ? given : 0);
  }

  synchronized void leave(LeaseExpress lease) {
    obeying.remove(lease);
  }

  /** A lease has been told to obey, or not to. */
  synchronized void changed(LeaseExpress lease) {
    lease.mask(lease.obeys() && !lost ? given : 0);
  }

  /**
   * {@return a bit for a process; -1 if all are taken}
   *
   * @param lease its lease's id
   */
  synchronized int take(String lease) {
    if (lost || given == -1L) {
      return -1;
    }
    // Not the one that was given back last: its process may be alive still, and clear it.
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

  /** A lease has a bit that an earlier seat gave to it. */
  synchronized void adopt(int bit, String lease) {
    holders[bit] = lease;
  }

  /** {@return the lease whose process has a bit, or had it last; null: none, or no such bit} */
  synchronized @Nullable String holder(int bit) {
    return bit < 0 || bit >= EXPRESS_BITS ? null : holders[bit];
  }

  /** Takes a bit back. */
  synchronized void giveBack(int bit) {
    given &= ~(1L << bit);
    tellAll();
    clear(bit);
  }

  /** Sets the bit of a process that may not, and shows that it lives. */
  synchronized void announce(int bit, long nowNs) {
    if (lost) {
      return;
    }
    try {
      // First: a bit with an old beat does not count.
      page.setLong(EXPRESS_OFFSET + Express.BEAT_NS + bit * Long.BYTES, nowNs);
      long seen = page.longAt(BUSY);
      while ((seen & 1L << bit) == 0) {
        if (page.compareAndSet(BUSY, seen, seen | 1L << bit)) {
          wake(bit); // who has a kernel running may stop it
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

  /** Clears the bit of a process that cannot: it is dead, or stopped. */
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
        "a tenant has destroyed a GPU's express lane, so the seat's words alone count: file={} ({})",
        name,
        cause.getMessage());
  }

  /** Nothing is given or cleared any more; what is given stays so. */
  synchronized void close() {
    lost = true;
    page.close();
  }
}
