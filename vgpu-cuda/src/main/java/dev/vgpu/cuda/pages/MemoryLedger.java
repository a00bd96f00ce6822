package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.LEDGER_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_GPUS;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_GPU_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SEQ_MASK;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SLOT_MASK;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SLOT_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_UNIT;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_UNITS_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.SLOTS_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_COUNT;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_FREE;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_RECLAIMING;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_SIZE;

import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.layout.ShmLayout.Ledger;
import dev.vgpu.cuda.layout.ShmLayout.Slot;
import java.util.function.IntToLongFunction;

/**
 * The seat's side of a lease's memory ledger: how much is held, and how the memory of a dead
 * process is reclaimed. Confined to one thread at a time.
 *
 * <p>One word holds the total and the name (slot, sequence) of the last change that was applied to
 * it. A process first writes its intent (delta, then sequence) into its slot. It then applies the
 * change to the word by compare-and-swap, and records it as its own. A process that replaces the
 * word first marks the previous change as done, in that change's slot ({@code memory_done}). So the
 * last change of a dead process was applied if the word still names it, or if it is marked as done.
 * Read the word before the mark, because marking precedes replacing.
 *
 * <p>A lease on several GPUs has one such word for each, all alike. A process makes one change at a
 * time, so one intent in its slot is enough; {@code memory_seq} names the GPU too.
 *
 * <p>The seat reclaims memory as slot 0, by a change of its own on each GPU in turn, so its own
 * death in the middle is resolved in the same way. {@code memory_target} of slot 0 names the dead
 * slot, the GPU and the sequence of that change. The counters that outlive the slot are first
 * staged in slot 0; storing {@code memory_target} commits them. A freed slot's {@code memory_done}
 * keeps its version. Otherwise a process that was stopped before it marked the dead process's
 * change could mark a change of the slot's next owner.
 */
public final class MemoryLedger {
  private static final int SEQ_BITS = MEMORY_SLOT_SHIFT;
  private static final int TARGET_SEQ_SHIFT = 8;
  private static final int TARGET_GPU_SHIFT = 28;
  private static final long MAX_UNITS = (1L << (64 - MEMORY_UNITS_SHIFT)) - 1;

  private final SharedPage grant;
  private final SharedPage report;

  /** The ledger of a lease, in its two pages. */
  public MemoryLedger(SharedPage grant, SharedPage report) {
    this.grant = grant;
    this.report = report;
  }

  /** Counters of a lease's ended processes. */
  public record Retired(long gpuNs, long launches, long denied, long copyNs) {
    /** {@return the counters in a grant page} */
    public static Retired in(SharedPage grant) {
      return new Retired(
          grant.longAt(GRANT_OFFSET + Grant.RETIRED_GPU_NS),
          grant.longAt(GRANT_OFFSET + Grant.RETIRED_LAUNCHES),
          grant.longAt(GRANT_OFFSET + Grant.RETIRED_DENIED),
          grant.longAt(GRANT_MORE_OFFSET + GrantMore.RETIRED_COPY_NS));
    }
  }

  /** {@return the offset of a slot in the report file} */
  public static int slotAt(int slot) {
    return SLOTS_OFFSET + slot * SLOT_SIZE;
  }

  /** {@return how many accounts the lease has: one for each GPU, or one for all} */
  private int accounts() {
    int told = grant.intAt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS);
    return Math.max(1, Math.min(told, MEMORY_GPUS));
  }

  /** {@return whether a process holds memory on any GPU, by the fields of its slot} */
  public static boolean holds(IntToLongFunction slot) {
    for (int gpu = 0; gpu < MEMORY_GPUS; gpu++) {
      if (slot.applyAsLong(ownAt(gpu)) >>> SEQ_BITS != 0) {
        return true;
      }
    }
    return false;
  }

  /** {@return the memory that the lease's processes hold together on all GPUs, in bytes} */
  public long usedBytes() {
    long sum = 0;
    for (int gpu = 0; gpu < accounts(); gpu++) {
      sum += usedBytes(gpu);
    }
    return sum;
  }

  /** {@return the memory that the lease's processes hold together in one account, in bytes} */
  private long usedBytes(int gpu) {
    return units(report.longAt(wordAt(gpu))) * MEMORY_UNIT;
  }

  /** {@return the memory held on a GPU of so many; an even part, if all have one account} */
  public long usedBytes(int gpu, int gpus) {
    return accounts() == gpus ? usedBytes(gpu) : usedBytes() / gpus;
  }

  /** {@return the same of the account that holds the most} */
  public long mostUsedBytes() {
    long most = 0;
    for (int gpu = 0; gpu < accounts(); gpu++) {
      most = Math.max(most, usedBytes(gpu));
    }
    return most;
  }

  /** {@return what the process of a slot holds on all GPUs, in bytes, by its own account} */
  long heldBytes(int slot) {
    long sum = 0;
    for (int gpu = 0; gpu < accounts(); gpu++) {
      sum += held(slot, gpu);
    }
    return sum * MEMORY_UNIT;
  }

  /**
   * Makes every change in progress read the limit again: a process that read the old limit finds
   * that the word has changed.
   */
  public void touch() {
    for (int gpu = 0; gpu < accounts(); gpu++) {
      change(0, gpu, nextSeq(gpu));
    }
  }

  /**
   * Reclaims the memory of a dead process's slot, keeps its counters, and frees the slot. The
   * process must be dead: it must not change anything any more.
   *
   * @param retired the lease's counters including those of this slot
   */
  public void recover(int slot, Retired retired) {
    report.setInt(slotAt(slot) + Slot.STATE, SLOT_RECLAIMING);
    int own = slotAt(0);
    report.setLong(own + Slot.GPU_NS, retired.gpuNs());
    report.setLong(own + Slot.LAUNCHES, retired.launches());
    report.setLong(own + Slot.DENIED, retired.denied());
    report.setLong(own + Slot.COPY_NS, retired.copyNs());
    recoverFrom(slot, 0);
  }

  /**
   * Finishes a recovery during which an earlier holder of the seat died. Call this before anything
   * else. If the recovery of a slot in state reclaiming had not begun, the caller must {@link
   * #recover} it.
   */
  public void takeOver() {
    int own = slotAt(0);
    long target = report.longAt(own + Slot.MEMORY_TARGET);
    int slot = (int) (target & MEMORY_SLOT_MASK);
    long seq = target >>> TARGET_SEQ_SHIFT & MEMORY_SEQ_MASK;
    long gpu = target >>> TARGET_GPU_SHIFT;
    if (slot == 0
        || slot >= SLOT_COUNT
        || seq == 0
        || gpu >= accounts()
        || report.intAt(slotAt(slot) + Slot.STATE) != SLOT_RECLAIMING) {
      report.setLong(own + Slot.MEMORY_TARGET, 0);
      return;
    }
    int at = (int) gpu;
    boolean begun = report.longAt(own + Slot.MEMORY_SEQ) == intent(at, seq);
    boolean noted = (report.longAt(own + ownAt(at)) & MEMORY_SEQ_MASK) == seq;
    keepCounters();
    if (begun && (noted || isApplied(0, at, seq))) {
      report.setLong(own + ownAt(at), seq);
    } else {
      change(-held(slot, at), at, seq);
    }
    recoverFrom(slot, at + 1);
  }

  /** Takes back what a dead process's slot holds on each GPU from this one on; frees the slot. */
  private void recoverFrom(int slot, int first) {
    for (int gpu = first; gpu < accounts(); gpu++) {
      long seq = nextSeq(gpu);
      long target = (long) gpu << TARGET_GPU_SHIFT | seq << TARGET_SEQ_SHIFT | slot;
      report.setLong(slotAt(0) + Slot.MEMORY_TARGET, target);
      keepCounters();
      change(-held(slot, gpu), gpu, seq);
    }
    free(slot);
  }

  /** Copies the counters that are staged in slot 0; idempotent. */
  private void keepCounters() {
    int own = slotAt(0);
    keep(GRANT_OFFSET + Grant.RETIRED_GPU_NS, own + Slot.GPU_NS);
    keep(GRANT_OFFSET + Grant.RETIRED_LAUNCHES, own + Slot.LAUNCHES);
    keep(GRANT_OFFSET + Grant.RETIRED_DENIED, own + Slot.DENIED);
    keep(GRANT_MORE_OFFSET + GrantMore.RETIRED_COPY_NS, own + Slot.COPY_NS);
  }

  private void keep(int at, int from) {
    long value = report.longAt(from);
    if (value > grant.longAt(at)) {
      grant.setLong(at, value);
    }
  }

  /** {@return what a dead or idle process holds on a GPU, in units} */
  private long held(int slot, int gpu) {
    int at = slotAt(slot);
    long own = report.longAt(at + ownAt(gpu));
    long intent = report.longAt(at + Slot.MEMORY_SEQ);
    long seq = intent & MEMORY_SEQ_MASK;
    long held = own >>> SEQ_BITS;
    // An intent of another GPU: the last change on this one is complete.
    boolean here = intent == intent(gpu, seq);
    if (here && seq != (own & MEMORY_SEQ_MASK) && isApplied(slot, gpu, seq)) {
      long delta = report.longAt(at + Slot.MEMORY_DELTA);
      held += Math.max(-MAX_UNITS, Math.min(MAX_UNITS, delta));
    }
    return Math.max(0, Math.min(held, units(report.longAt(wordAt(gpu)))));
  }

  private boolean isApplied(int slot, int gpu, long seq) {
    long word = report.longAt(wordAt(gpu));
    if (slot(word) == slot && seq(word) == seq) {
      return true;
    }
    return (report.longAt(slotAt(slot) + doneAt(gpu)) & MEMORY_SEQ_MASK) == seq;
  }

  private void change(long delta, int gpu, long seq) {
    int own = slotAt(0);
    long done = report.longAt(own + doneAt(gpu));
    // Also at each wrap of the sequence, for a process that was stopped since the last wrap.
    if ((done & MEMORY_SEQ_MASK) == seq || seq == 1) {
      report.compareAndSet(own + doneAt(gpu), done, nextVersion(done));
    }
    report.setLong(own + Slot.MEMORY_DELTA, delta);
    report.setLong(own + Slot.MEMORY_SEQ, intent(gpu, seq));
    boolean applied = tryApply(delta, gpu, seq);
    for (int attempt = 1; !applied && attempt < report.mostAttempts(); attempt++) {
      applied = tryApply(delta, gpu, seq);
    }
    if (!applied
        && !report.changeLedger(wordAt(gpu), delta, seq, doneAt(gpu))
        && !isApplied(0, gpu, seq)) {
      // No honest process is that fast. A hostile one harms only its own lease.
      report.setLong(wordAt(gpu), replacement(report.longAt(wordAt(gpu)), delta, seq));
    }
    report.setLong(own + ownAt(gpu), seq);
  }

  private boolean tryApply(long delta, int gpu, long seq) {
    long word = report.longAt(wordAt(gpu));
    return markDone(word, gpu)
        && report.compareAndSet(wordAt(gpu), word, replacement(word, delta, seq));
  }

  private static long replacement(long word, long delta, long seq) {
    return Math.max(0, units(word) + delta) << MEMORY_UNITS_SHIFT | seq;
  }

  /** Marks the change that a GPU's word names; false if the word must be read again. */
  private boolean markDone(long word, int gpu) {
    int slot = slot(word);
    if (slot == 0 || slot >= SLOT_COUNT || seq(word) == 0) {
      return true;
    }
    int at = slotAt(slot) + doneAt(gpu);
    long done = report.longAt(at);
    if ((done & MEMORY_SEQ_MASK) == seq(word)) {
      return true;
    }
    if (report.longAt(wordAt(gpu)) != word) {
      return false;
    }
    // On failure, another process has just marked this change or an older one: read the word again.
    return report.compareAndSet(at, done, nextVersion(done) | seq(word));
  }

  private void free(int slot) {
    int at = slotAt(slot);
    for (int gpu = 0; gpu < accounts(); gpu++) {
      report.setLong(at + ownAt(gpu), 0);
    }
    report.setLong(at + Slot.MEMORY_SEQ, 0);
    report.setLong(at + Slot.MEMORY_DELTA, 0);
    for (int gpu = 0; gpu < accounts(); gpu++) {
      forget(at + doneAt(gpu));
    }
    report.clear(at + Slot.HEARTBEAT_NS, Slot.RESERVED4 - Slot.HEARTBEAT_NS);
    report.setInt(at + Slot.STATE, SLOT_FREE);
    report.setLong(slotAt(0) + Slot.MEMORY_TARGET, 0);
  }

  /** A late helper marks an earlier change, so its mark carries an earlier version. */
  private void forget(int at) {
    long done = report.longAt(at);
    for (int attempt = 1; !report.compareAndSet(at, done, nextVersion(done)); attempt++) {
      if (attempt == report.mostAttempts()) {
        report.setLong(at, nextVersion(done)); // as above: only a hostile process gets here
        return;
      }
      done = report.longAt(at);
    }
  }

  /** {@return the number of slot 0's next change on a GPU, above all that it began there} */
  private long nextSeq(int gpu) {
    int own = slotAt(0);
    long last = report.longAt(own + Slot.MEMORY_SEQ);
    long before = last >>> MEMORY_GPU_SHIFT;
    if (before == gpu) {
      return following(last);
    }
    // An earlier seat may have died in that change: its number must not be used again.
    if (before < accounts()) {
      report.setLong(own + ownAt((int) before), last & MEMORY_SEQ_MASK);
    }
    return following(report.longAt(own + ownAt(gpu)));
  }

  static int wordAt(int gpu) {
    int at = gpu == 0 ? Ledger.MEMORY_WORD : Ledger.MEMORY_WORDS + (gpu - 1) * Long.BYTES;
    return LEDGER_OFFSET + at;
  }

  static int ownAt(int gpu) {
    return gpu == 0 ? Slot.MEMORY_OWN : Slot.MEMORY_OWNS + (gpu - 1) * Long.BYTES;
  }

  static int doneAt(int gpu) {
    return gpu == 0 ? Slot.MEMORY_DONE : Slot.MEMORY_DONES + (gpu - 1) * Long.BYTES;
  }

  private static long intent(int gpu, long seq) {
    return (long) gpu << MEMORY_GPU_SHIFT | seq;
  }

  private static long nextVersion(long done) {
    return ((done >>> SEQ_BITS) + 1) << SEQ_BITS;
  }

  private static long following(long seq) {
    long next = (seq + 1) & MEMORY_SEQ_MASK;
    return next == 0 ? 1 : next;
  }

  private static long units(long word) {
    return word >>> MEMORY_UNITS_SHIFT;
  }

  private static int slot(long word) {
    return (int) (word >>> MEMORY_SLOT_SHIFT) & MEMORY_SLOT_MASK;
  }

  private static long seq(long word) {
    return word & MEMORY_SEQ_MASK;
  }
}
