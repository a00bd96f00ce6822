package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_GPUS;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_GPU_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SEQ_MASK;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SLOT_MASK;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_SLOT_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.MEMORY_UNITS_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.SLOT_COUNT;

import dev.vgpu.cuda.layout.ShmLayout.Slot;

/**
 * A tenant's process as the memory ledger sees it, after docs/memory-ledger.md. It makes one access
 * to shared memory at a time, so it can be stopped, or die, between any two.
 */
public final class LedgerProcess {
  private enum Step {
    IDLE,
    READ_OWN,
    READ_RECEIPT,
    CLEAR_RECEIPT,
    WRITE_DELTA,
    WRITE_SEQ,
    READ_WORD,
    READ_OTHER,
    READ_WORD_AGAIN,
    WRITE_OTHER,
    CHANGE_WORD,
    REFUSE,
    WRITE_OWN
  }

  private final SharedPage page;
  private final int slot;
  private final int at;
  private final long limitUnits;
  private Step next = Step.IDLE;
  private int gpu;
  private long delta;
  private long own;
  private long seq;
  private long receipt;
  private long word;
  private long other;

  /** What it really holds on each GPU: the changes that were applied to its word. */
  final long[] holdsUnits = new long[MEMORY_GPUS];

  /** Whether its last change was refused. */
  boolean refused;

  public LedgerProcess(SharedPage page, int slot, long limitUnits) {
    this.page = page;
    this.slot = slot;
    this.at = MemoryLedger.slotAt(slot);
    this.limitUnits = limitUnits;
  }

  boolean isIdle() {
    return next == Step.IDLE;
  }

  /** {@return whether it marks another's change next} Its reading may be stale by then. */
  boolean isAboutToMark() {
    return next == Step.WRITE_OTHER;
  }

  void begin(long delta, int gpu) {
    this.gpu = gpu;
    this.delta = delta;
    this.refused = false;
    this.next = Step.READ_OWN;
  }

  /** Makes a whole change on the first GPU, undisturbed. */
  public boolean change(long delta) {
    return change(delta, 0);
  }

  /** Makes a whole change on a GPU, undisturbed. */
  public boolean change(long delta, int gpu) {
    begin(delta, gpu);
    while (!isIdle()) {
      step();
    }
    return !refused;
  }

  /** Makes one access. */
  void step() {
    switch (next) {
      case READ_OWN -> {
        own = page.longAt(at + MemoryLedger.ownAt(gpu));
        seq = ((own & MEMORY_SEQ_MASK) + 1) & MEMORY_SEQ_MASK;
        seq = seq == 0 ? 1 : seq;
        next = Step.READ_RECEIPT;
      }
      case READ_RECEIPT -> {
        receipt = page.longAt(at + MemoryLedger.doneAt(gpu));
        boolean clear = (receipt & MEMORY_SEQ_MASK) == seq || seq == 1;
        next = clear ? Step.CLEAR_RECEIPT : Step.WRITE_DELTA;
      }
      case CLEAR_RECEIPT -> {
        page.compareAndSet(at + MemoryLedger.doneAt(gpu), receipt, version(receipt));
        next = Step.WRITE_DELTA;
      }
      case WRITE_DELTA -> {
        page.setLong(at + Slot.MEMORY_DELTA, delta);
        next = Step.WRITE_SEQ;
      }
      case WRITE_SEQ -> {
        page.setLong(at + Slot.MEMORY_SEQ, (long) gpu << MEMORY_GPU_SHIFT | seq);
        next = Step.READ_WORD;
      }
      case READ_WORD -> {
        word = page.longAt(MemoryLedger.wordAt(gpu));
        boolean helps = wordSlot() != slot && wordSlot() < SLOT_COUNT && wordSeq() != 0;
        next = helps ? Step.READ_OTHER : decide();
      }
      case READ_OTHER -> {
        other = page.longAt(otherReceipt());
        next = (other & MEMORY_SEQ_MASK) == wordSeq() ? decide() : Step.READ_WORD_AGAIN;
      }
      case READ_WORD_AGAIN -> {
        next = page.longAt(MemoryLedger.wordAt(gpu)) == word ? Step.WRITE_OTHER : Step.READ_WORD;
      }
      case WRITE_OTHER -> {
        boolean marked = page.compareAndSet(otherReceipt(), other, version(other) | wordSeq());
        next = marked ? decide() : Step.READ_WORD;
      }
      case CHANGE_WORD -> changeWord();
      case REFUSE -> {
        page.setLong(at + Slot.MEMORY_DELTA, 0);
        refused = true;
        next = Step.IDLE;
      }
      case WRITE_OWN -> {
        page.setLong(at + MemoryLedger.ownAt(gpu), ((own >>> 20) + delta) << 20 | seq);
        next = Step.IDLE;
      }
      default -> throw new IllegalStateException("nothing to do");
    }
  }

  private Step decide() {
    boolean tooMuch = delta > 0 && (word >>> MEMORY_UNITS_SHIFT) + delta > limitUnits;
    return tooMuch ? Step.REFUSE : Step.CHANGE_WORD;
  }

  private void changeWord() {
    long units = (word >>> MEMORY_UNITS_SHIFT) + delta;
    long changed = units << MEMORY_UNITS_SHIFT | (long) slot << MEMORY_SLOT_SHIFT | seq;
    if (page.compareAndSet(MemoryLedger.wordAt(gpu), word, changed)) {
      holdsUnits[gpu] += delta;
      next = Step.WRITE_OWN;
    } else {
      next = Step.READ_WORD;
    }
  }

  private int wordSlot() {
    return (int) (word >>> MEMORY_SLOT_SHIFT) & MEMORY_SLOT_MASK;
  }

  private long wordSeq() {
    return word & MEMORY_SEQ_MASK;
  }

  private int otherReceipt() {
    return MemoryLedger.slotAt(wordSlot()) + MemoryLedger.doneAt(gpu);
  }

  private static long version(long receipt) {
    return ((receipt >>> 20) + 1) << 20;
  }
}
