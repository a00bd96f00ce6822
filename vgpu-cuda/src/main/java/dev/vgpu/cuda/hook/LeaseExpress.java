package dev.vgpu.cuda.hook;

import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_ANNOUNCES;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_BITS;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_OBEYS;
import static dev.vgpu.cuda.layout.ShmLayout.EXPRESS_TOLD;

import dev.vgpu.cuda.pages.GrantPage;
import dev.vgpu.request.PreemptionClass;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A lease's part in its GPU's express lane: the bits of its processes, or that it obeys. Guarded by
 * the lease's lock, except for {@link #obeys} and {@link #mask}, which the lane's lock guards.
 */
final class LeaseExpress {
  /** No bit. */
  static final int NO_BIT = -1;

  private final String lease;
  private final @Nullable ExpressLane lane;
  private final GrantPage grant;
  private final boolean urgent;
  private final Map<String, Long> yields = new HashMap<>();
  private long bits;
  private volatile boolean obeys;

  /**
   * Does not touch the lane until {@link #begin}.
   *
   * @param lease its id
   * @param lane the GPU's; null: only the seat's grants decide
   * @param grant the lease's
   * @param preemptionClass the lease's
   */
  LeaseExpress(
      String lease, @Nullable ExpressLane lane, GrantPage grant, PreemptionClass preemptionClass) {
    this.lease = lease;
    this.lane = lane;
    this.grant = grant;
    this.urgent = preemptionClass != PreemptionClass.OFFLINE;
    this.obeys = lane != null && !urgent;
  }

  /** Joins the lane. Call this after the grant page was begun. */
  void begin() {
    grant.expressPage(lane == null ? "" : lane.name());
    if (lane == null || urgent) {
      mask(0);
    } else {
      lane.join(this);
    }
  }

  /** {@return whether the lease obeys the lane now} */
  boolean obeys() {
    return obeys;
  }

  /** Writes which bits hold its processes back. */
  void mask(long mask) {
    grant.expressMask(mask);
  }

  /** Tells an offline lease whether to obey. */
  void obey(boolean obey) {
    if (lane != null && !urgent && obeys != obey) {
      obeys = obey;
      lane.changed(this);
    }
  }

  /** Gives a process of an urgent lease a bit, if one is free. */
  void attached(SeatSlot slot) {
    if (lane != null && urgent) {
      take(slot, lane.take(lease));
    }
  }

  private void take(SeatSlot slot, int bit) {
    if (bit != NO_BIT) {
      slot.expressBit = bit;
      bits |= 1L << bit;
      grant.expressSlot(bit, slot.number);
    }
  }

  /** Adopts the bits that an earlier seat gave to the remaining processes; frees the others. */
  void adopt(List<SeatSlot> slots) {
    for (int bit = 0; bit < EXPRESS_BITS; bit++) {
      int number = grant.expressSlotAt(bit);
      if (number != 0) {
        adopt(slots, bit, number);
      }
    }
  }

  private void adopt(List<SeatSlot> slots, int bit, int number) {
    for (SeatSlot slot : slots) {
      if (lane != null && urgent && slot.number == number && slot.expressBit == NO_BIT) {
        lane.adopt(bit, lease);
        take(slot, bit);
        return;
      }
    }
    grant.expressSlot(bit, 0);
    if (lane != null) {
      lane.giveBack(bit);
    }
  }

  /** Frees the bit of a process that is dead or leaves. */
  void detached(SeatSlot slot) {
    int bit = slot.expressBit;
    if (bit != NO_BIT && lane != null) {
      slot.expressBit = NO_BIT;
      bits &= ~(1L << bit);
      grant.expressSlot(bit, 0);
      lane.giveBack(bit);
    }
  }

  /**
   * Handles a new reading of a process. If it is stopped, its bit is cleared; the process sets it
   * again when it resumes. If it obeys, notes which lease held it back.
   */
  void observed(SeatSlot slot, long nowNs) {
    if (slot.isStopped()) {
      stopped(slot);
    }
    announce(slot, nowNs);
    long more = slot.newYields();
    if (more > 0 && lane != null && !urgent) {
      String to = lane.holder(slot.yieldedTo());
      if (to != null) {
        yields.merge(to, more, Long::sum);
      }
    }
  }

  /**
   * Sets or clears the bit of a process that may not write the page, from its last reading. While
   * the gate is shut, a set bit stays set until the work ends, but no bit is newly set.
   */
  void announce(SeatSlot slot, long nowNs) {
    int bit = slot.expressBit;
    if (bit == NO_BIT || lane == null || slot.express() != EXPRESS_TOLD) {
      return;
    }
    boolean set = (lane.busy() & 1L << bit) != 0;
    if (slot.isBusy(true) && (set || grant.isOpen())) {
      lane.announce(bit, nowNs);
    } else if (set) {
      lane.clear(bit);
    }
  }

  /** {@return how often each lease has held this one back since the last call} */
  Map<String, Long> takeYields() {
    if (yields.isEmpty()) {
      return Map.of();
    }
    Map<String, Long> taken = Map.copyOf(yields);
    yields.clear();
    return taken;
  }

  private void stopped(SeatSlot slot) {
    if (slot.expressBit != NO_BIT && lane != null) {
      lane.clear(slot.expressBit);
    }
  }

  /** {@return whether a process announces that it is busy} */
  boolean isBusy() {
    return bits != 0 && lane != null && (lane.busy() & bits) != 0;
  }

  /** {@return whether all processes that have done any work play their part in the lane} */
  boolean isWhole(List<SeatSlot> slots) {
    if (lane == null || !lane.works()) {
      return false;
    }
    int part = urgent ? EXPRESS_ANNOUNCES : EXPRESS_OBEYS;
    for (SeatSlot slot : slots) {
      boolean told = urgent && slot.express() == EXPRESS_TOLD && slot.expressBit != NO_BIT;
      if (!slot.isFresh() && slot.express() != part && !told) {
        return false;
      }
    }
    return true;
  }

  /** Frees all bits and leaves the lane: the lease has ended. */
  void close(List<SeatSlot> slots) {
    slots.forEach(this::detached);
    if (lane != null) {
      lane.leave(this);
    }
  }
}
