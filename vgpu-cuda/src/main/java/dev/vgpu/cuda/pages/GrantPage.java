package dev.vgpu.cuda.pages;

import static dev.vgpu.cuda.layout.ShmLayout.GRANT_COUNT_SHIFT;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_MORE_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OFFSET;
import static dev.vgpu.cuda.layout.ShmLayout.GRANT_OPEN;
import static dev.vgpu.cuda.layout.ShmLayout.LEVEL2_ALLOWED;
import static dev.vgpu.cuda.layout.ShmLayout.LEVEL2_STOP;
import static dev.vgpu.cuda.layout.ShmLayout.TURN_CONTENDED;
import static dev.vgpu.cuda.layout.ShmLayout.TURN_LIMITED;
import static dev.vgpu.cuda.layout.ShmLayout.TURN_RESTING;
import static dev.vgpu.cuda.layout.ShmLayout.TURN_SUSPENDED;

import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.layout.ShmLayout.Header;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemoryMobility;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;

/** The seat's view of a lease's grant page. Guarded by the lease's lock. */
public final class GrantPage {
  /** Where the word is that tells the end of the seat's thread. */
  public static final int SEAT_THREAD = GRANT_MORE_OFFSET + GrantMore.SEAT_THREAD;

  /** Small, because work in flight at the end of a turn delays the next turn. */
  private static final int INFLIGHT_US = 2_000;

  /** Smaller where a more urgent process may arrive at any moment and wait for that work. */
  private static final int INFLIGHT_OBEYING_US = 400;

  private static final int WORD = GRANT_OFFSET + Grant.WORD;

  /**
   * The longest time slice of an offline lease whose channels the driver cannot stop: a fifth of
   * the usual slice.
   */
  private static final int OFFLINE_TIMESLICE_US = 200;

  private final SharedPage page;
  private final boolean level2;
  private boolean contended;
  private boolean resting;
  private boolean limited;
  private boolean mayStop;
  private boolean finishing;

  /**
   * Wraps a grant page.
   *
   * @param page the grant page
   * @param level2 whether offline processes may be stopped inside kernels
   */
  public GrantPage(SharedPage page, boolean level2) {
    this.page = page;
    this.level2 = level2;
    // Inherited from an earlier seat: a process that waits for this flag must not see it cleared.
    this.finishing = (page.intAt(GRANT_OFFSET + Grant.TURN_FLAGS) & TURN_SUSPENDED) != 0;
  }

  /** Writes the seat's holder and the fields that stay constant. */
  public void begin(long pid, long startTime, long pidNamespace, long contextBytes) {
    page.setInt(SEAT_THREAD, 0);
    page.setLong(Header.SEAT_PID, pid);
    page.setLong(Header.SEAT_START, startTime);
    page.setLong(GRANT_MORE_OFFSET + GrantMore.PID_NAMESPACE, pidNamespace);
    page.setLong(GRANT_OFFSET + Grant.CONTEXT_BYTES, contextBytes);
  }

  /** Writes the terms, except for the memory quota. */
  public void terms(VirtualGpuRequest request, int entitledPermille) {
    page.setInt(GRANT_OFFSET + Grant.POLICY, code(request.policy()));
    page.setInt(GRANT_OFFSET + Grant.PREEMPTION_CLASS, code(request.preemptionClass()));
    page.setInt(GRANT_OFFSET + Grant.ENTITLED_PERMILLE, entitledPermille);
    boolean stops = level2 && request.preemptionClass() == PreemptionClass.OFFLINE;
    mayStop = stops;
    writeMayStop();
    page.setInt(GRANT_OFFSET + Grant.TIMESLICE_US, stops ? OFFLINE_TIMESLICE_US : 0);
    limited =
        request.policy() == SharePolicy.FIXED_SHARE && request.computePercent().orElse(100) < 100;
    writeTurnFlags();
    boolean movable = request.memoryMobility() == MemoryMobility.MOVABLE;
    page.setInt(GRANT_OFFSET + Grant.MEMORY_FLAGS, movable ? ShmLayout.MEMORY_MOVABLE : 0);
  }

  private void writeMayStop() {
    page.setInt(GRANT_OFFSET + Grant.LEVEL2_FLAGS, mayStop && !finishing ? LEVEL2_ALLOWED : 0);
  }

  /** Sets whether the lease finishes its work: no context is made, and no kernel is stopped. */
  public void finishing(boolean finish) {
    if (finishing != finish) {
      finishing = finish;
      writeMayStop();
      writeTurnFlags();
      // Pairs with the hook: it charges a context, then reads this. We write, then read the
      // charges.
      VarHandle.fullFence();
    }
  }

  boolean isFinishing() {
    return finishing;
  }

  /** {@return whether some of the lease's memory can be moved to the host} */
  public boolean isMovable() {
    return (page.intAt(GRANT_OFFSET + Grant.MEMORY_FLAGS) & ShmLayout.MEMORY_MOVABLE) != 0;
  }

  /** Orders at least this many bytes of each process to the host. Returns the order's number. */
  public int moveOut(long atLeast) {
    page.setLong(GRANT_OFFSET + Grant.MOVE_BYTES, atLeast);
    return order(ShmLayout.MOVE_OUT);
  }

  /** Orders all of it back to the GPU. Returns the order's number. */
  public int moveBack() {
    return order(0);
  }

  private int order(int where) {
    int at = GRANT_OFFSET + Grant.MOVE_ORDER;
    int order = ((page.intAt(at) >>> 1) + 1) << 1 | where;
    page.setInt(at, order);
    return order;
  }

  private static int code(SharePolicy policy) {
    return switch (policy) {
      case BEST_EFFORT -> ShmLayout.POLICY_BEST_EFFORT;
      case FIXED_SHARE -> ShmLayout.POLICY_FIXED_SHARE;
      case BURST_SHARE -> ShmLayout.POLICY_BURST_SHARE;
    };
  }

  private static int code(PreemptionClass preemptionClass) {
    return switch (preemptionClass) {
      case ONLINE -> ShmLayout.CLASS_ONLINE;
      case NEARLINE -> ShmLayout.CLASS_NEARLINE;
      case OFFLINE -> ShmLayout.CLASS_OFFLINE;
    };
  }

  /** Sets whether other tenants wait for the GPU. */
  public void contended(boolean contended) {
    if (this.contended != contended) {
      this.contended = contended;
      writeTurnFlags();
    }
  }

  /** Sets whether the seat polls rarely. */
  public void resting(boolean resting) {
    if (this.resting != resting) {
      this.resting = resting;
      writeTurnFlags();
    }
  }

  /** {@return whether the seat polls rarely} */
  public boolean isResting() {
    return resting;
  }

  private void writeTurnFlags() {
    int flags =
        (contended ? TURN_CONTENDED : 0)
            | (contended || limited ? TURN_LIMITED : 0)
            | (finishing ? TURN_SUSPENDED : 0)
            | (resting ? TURN_RESTING : 0);
    page.setInt(GRANT_OFFSET + Grant.TURN_FLAGS, flags);
  }

  /** {@return whether work may start} */
  public boolean isOpen() {
    return (page.intAt(WORD) & GRANT_OPEN) != 0;
  }

  /** Opens or shuts the gate; counts that are read afterwards reflect the new word. */
  public void word(int flags) {
    if ((flags & GRANT_OPEN) != 0) {
      setStop(false);
    }
    int count = (page.intAt(WORD) >>> GRANT_COUNT_SHIFT) + 1;
    page.setInt(WORD, count << GRANT_COUNT_SHIFT | flags);
    // Pairs with the hook: it counts its batch, then reads the word. We write, then read counts.
    VarHandle.fullFence();
  }

  /** Wakes all threads that wait for the word to change. */
  public void wake(Wake wake) {
    wake.all(page, WORD);
  }

  /** Gives each of so many GPUs an account of its own, before a process attaches. */
  public void memoryGpus(int gpus) {
    page.setInt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS, gpus);
  }

  /** {@return how many GPUs have an account of their own; 0: one account for all} */
  public int memoryGpus() {
    return page.intAt(GRANT_MORE_OFFSET + GrantMore.MEMORY_GPUS);
  }

  /** {@return the quota of each account in bytes} */
  public long memoryLimit() {
    return page.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT);
  }

  /** Sets the quota of each account in bytes. */
  public void memoryLimit(long bytes) {
    page.setLong(GRANT_OFFSET + Grant.MEMORY_LIMIT, bytes);
  }

  /** Counts one more granted turn. */
  public void countTurn() {
    count(GRANT_OFFSET + Grant.TURNS);
  }

  /** Counts a turn lost to a more urgent tenant; stops running kernels if possible. */
  public void preempted(Wake wake) {
    count(GRANT_OFFSET + Grant.PREEMPTIONS);
    if (setStop(true)) {
      wake(wake);
    }
  }

  /** {@return whether that is a change} */
  private boolean setStop(boolean stop) {
    int flags = page.intAt(GRANT_OFFSET + Grant.LEVEL2_FLAGS);
    boolean changes = (flags & LEVEL2_ALLOWED) != 0 && stop != ((flags & LEVEL2_STOP) != 0);
    if (changes) {
      page.setInt(GRANT_OFFSET + Grant.LEVEL2_FLAGS, flags ^ LEVEL2_STOP);
    }
    return changes;
  }

  private void count(int at) {
    page.setLong(at, page.longAt(at) + 1);
  }

  /** Names the GPU's express lane; empty: none. */
  public void expressPage(String name) {
    byte[] bytes = new byte[Grant.EXPRESS_PAGE_LENGTH];
    byte[] text = name.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(text, 0, bytes, 0, Math.min(text.length, bytes.length - 1));
    page.buffer().put(GRANT_OFFSET + Grant.EXPRESS_PAGE, bytes);
  }

  /**
   * Names the lease's GPUs, so that its processes see no others. The list stays empty, and hides
   * nothing, if an id is no UUID, which CUDA would not understand, or if the ids do not fit.
   */
  public void devices(List<GpuId> gpus) {
    byte[] bytes = new byte[GrantMore.DEVICES_LENGTH];
    boolean known =
        gpus.stream()
            .map(GpuId::value)
            .allMatch(id -> id.startsWith("GPU-") || id.startsWith("MIG-"));
    byte[] text =
        gpus.stream()
            .map(GpuId::value)
            .collect(Collectors.joining(","))
            .getBytes(StandardCharsets.US_ASCII);
    if (known && text.length < bytes.length) {
      System.arraycopy(text, 0, bytes, 0, text.length);
    }
    page.buffer().put(GRANT_MORE_OFFSET + GrantMore.DEVICES, bytes);
  }

  /** Sets which bits of the express lane hold the processes back. */
  public void expressMask(long mask) {
    page.setInt(GRANT_OFFSET + Grant.INFLIGHT_US, mask == 0 ? INFLIGHT_US : INFLIGHT_OBEYING_US);
    page.setLong(GRANT_OFFSET + Grant.EXPRESS_MASK, mask);
  }

  /** Sets which of the lease's slots owns a bit of the express lane; 0: none. */
  public void expressSlot(int bit, int slot) {
    page.buffer().put(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit, (byte) slot);
  }

  /** {@return which of the lease's slots owns a bit; 0: none} */
  public int expressSlotAt(int bit) {
    return Byte.toUnsignedInt(page.buffer().get(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit));
  }

  /** {@return how much of the measured GPU time belonged to other tenants, in ns} */
  public long othersNs() {
    return page.longAt(GRANT_OFFSET + Grant.OTHERS_NS);
  }

  /** Sets how much of the measured GPU time belonged to other tenants, in ns. */
  public void othersNs(long ns) {
    page.setLong(GRANT_OFFSET + Grant.OTHERS_NS, ns);
  }

  /** Makes the calling thread's end show, however it ends. Called by the seat's thread alone. */
  public void owned(RobustWords words, long pid) {
    page.setLong(GRANT_MORE_OFFSET + GrantMore.SEAT_THREAD_OF, pid);
    words.own(page);
  }

  /** The calling thread's end does not show any more. */
  public void disowned(RobustWords words) {
    words.disown(page);
  }

  /** Shows that the seat is alive. */
  public void beat(long nowNs) {
    page.setLong(Header.HEARTBEAT_NS, nowNs);
  }
}
