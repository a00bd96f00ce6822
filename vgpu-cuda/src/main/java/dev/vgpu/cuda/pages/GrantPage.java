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

import dev.vgpu.GpuId;
import dev.vgpu.MemoryMobility;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.layout.ShmLayout.Grant;
import dev.vgpu.cuda.layout.ShmLayout.GrantMore;
import dev.vgpu.cuda.layout.ShmLayout.Header;
import java.lang.invoke.VarHandle;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.stream.Collectors;

/** What the seat grants to a lease, as its processes see it. Guarded by the lease's lock. */
public final class GrantPage {
  /** What is in flight when a turn ends delays the next one, so it is little. */
  private static final int INFLIGHT_US = 2_000;

  /** The same where a more urgent process may come at any moment, which waits for it to end. */
  private static final int INFLIGHT_OBEYING_US = 400;

  private static final int WORD = GRANT_OFFSET + Grant.WORD;

  /**
   * The longest time slice of an offline lease whose driver cannot stop channels: a fifth of the
   * usual one.
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
   * Makes it.
   *
   * @param page the grant page
   * @param level2 whether offline processes may be stopped inside kernels
   */
  public GrantPage(SharedPage page, boolean level2) {
    this.page = page;
    this.level2 = level2;
    // Of an earlier seat: what waits for the lease to go on must not see a moment without it.
    this.finishing = (page.intAt(GRANT_OFFSET + Grant.TURN_FLAGS) & TURN_SUSPENDED) != 0;
  }

  /** Says who holds the seat, and what stays as it is. */
  public void begin(long pid, long startTime, long pidNamespace, long contextBytes) {
    page.setLong(Header.SEAT_PID, pid);
    page.setLong(Header.SEAT_START, startTime);
    page.setLong(GRANT_MORE_OFFSET + GrantMore.PID_NAMESPACE, pidNamespace);
    page.setLong(GRANT_OFFSET + Grant.CONTEXT_BYTES, contextBytes);
  }

  /** Writes the terms, but for the memory. */
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

  /** Says whether nothing is to be stopped, and what is goes on to its end. */
  public void finishing(boolean finish) {
    if (finishing != finish) {
      finishing = finish;
      writeMayStop();
      writeTurnFlags();
      // Pairs with the hook's: it charges a context, then reads this; then we read who is charged.
      VarHandle.fullFence();
    }
  }

  boolean isFinishing() {
    return finishing;
  }

  /** Whether some of the lease's memory can be moved to the host. */
  public boolean isMovable() {
    return (page.intAt(GRANT_OFFSET + Grant.MEMORY_FLAGS) & ShmLayout.MEMORY_MOVABLE) != 0;
  }

  /** Orders memory to the host: the order's number. */
  public int moveOut(long atLeast) {
    page.setLong(GRANT_OFFSET + Grant.MOVE_BYTES, atLeast);
    return order(ShmLayout.MOVE_OUT);
  }

  /** Orders all of it back: the order's number. */
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

  /** Says whether others wait for the GPU. */
  public void contended(boolean contended) {
    if (this.contended != contended) {
      this.contended = contended;
      writeTurnFlags();
    }
  }

  /** Says whether the seat looks seldom. */
  public void resting(boolean resting) {
    if (this.resting != resting) {
      this.resting = resting;
      writeTurnFlags();
    }
  }

  /** Whether the seat looks seldom. */
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

  /** Whether work may start. */
  public boolean isOpen() {
    return (page.intAt(WORD) & GRANT_OPEN) != 0;
  }

  /** Opens or shuts the gate; after it, the processes' counts are as of after it. */
  public void word(int flags) {
    if ((flags & GRANT_OPEN) != 0) {
      setStop(false);
    }
    int count = (page.intAt(WORD) >>> GRANT_COUNT_SHIFT) + 1;
    page.setInt(WORD, count << GRANT_COUNT_SHIFT | flags);
    // Pairs with the hook's: it counts its batch, then reads the word; we write, then read counts.
    VarHandle.fullFence();
  }

  /** Wakes all who wait for the word to change. */
  public void wake(Wake wake) {
    wake.all(page, WORD);
  }

  /** {@return the quota in bytes} */
  public long memoryLimit() {
    return page.longAt(GRANT_OFFSET + Grant.MEMORY_LIMIT);
  }

  /** Sets the quota in bytes. */
  public void memoryLimit(long bytes) {
    page.setLong(GRANT_OFFSET + Grant.MEMORY_LIMIT, bytes);
  }

  /** One more turn was given. */
  public void countTurn() {
    count(GRANT_OFFSET + Grant.TURNS);
  }

  /** A more urgent tenant took the turn: what runs is to stop, where it can be. */
  public void preempted(Wake wake) {
    count(GRANT_OFFSET + Grant.PREEMPTIONS);
    if (setStop(true)) {
      wake(wake);
    }
  }

  /** Whether that is a change. */
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

  /** Names the GPU's express lane; empty: there is none. */
  public void expressPage(String name) {
    byte[] bytes = new byte[Grant.EXPRESS_PAGE_LENGTH];
    byte[] text = name.getBytes(StandardCharsets.US_ASCII);
    System.arraycopy(text, 0, bytes, 0, Math.min(text.length, bytes.length - 1));
    page.buffer().put(GRANT_OFFSET + Grant.EXPRESS_PAGE, bytes);
  }

  /**
   * Names the lease's GPUs, so that its processes are shown no other. Ids that are no UUIDs mean
   * nothing to CUDA, and more than fit cannot be named: then it is left open.
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

  /** Says which bits of the express lane hold the processes back. */
  public void expressMask(long mask) {
    page.setInt(GRANT_OFFSET + Grant.INFLIGHT_US, mask == 0 ? INFLIGHT_US : INFLIGHT_OBEYING_US);
    page.setLong(GRANT_OFFSET + Grant.EXPRESS_MASK, mask);
  }

  /** Says which of the lease's slots has a bit of the express lane; 0: none. */
  public void expressSlot(int bit, int slot) {
    page.buffer().put(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit, (byte) slot);
  }

  /** {@return which of the lease's slots has a bit; 0: none} */
  public int expressSlotAt(int bit) {
    return Byte.toUnsignedInt(page.buffer().get(GRANT_OFFSET + Grant.EXPRESS_SLOTS + bit));
  }

  /** {@return what of the measured GPU time was others', in ns} */
  public long othersNs() {
    return page.longAt(GRANT_OFFSET + Grant.OTHERS_NS);
  }

  /** Says what of the measured GPU time was others'. */
  public void othersNs(long ns) {
    page.setLong(GRANT_OFFSET + Grant.OTHERS_NS, ns);
  }

  /** Shows that the seat is alive. */
  public void beat(long nowNs) {
    page.setLong(Header.HEARTBEAT_NS, nowNs);
  }
}
