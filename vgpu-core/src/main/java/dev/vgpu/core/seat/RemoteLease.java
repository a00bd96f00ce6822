package dev.vgpu.core.seat;

import dev.vgpu.core.book.BookedCalls;
import dev.vgpu.core.book.Booking;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.turn.GpuSeat;
import dev.vgpu.core.turn.InProcessGate;
import dev.vgpu.core.turn.RemoteGate;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** A virtual GPU of another process, in the books of the seat's holder. */
final class RemoteLease implements BookedCalls {
  /** The most usage that is assumed between two reports, in turns. */
  private static final int MOST_GUESSED_TURNS = 1;

  final String id;
  final RemoteGate gate;
  private final GpuSeat seat;
  private final boolean limited;
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile @Nullable Booking booking;

  /** The connection of its process; null if there has been none. */
  volatile @Nullable ClientSession session;

  /** Whether its process has a handler that frees memory. */
  volatile boolean hasReclaimHandler;

  private volatile Runnable reclaimAnswered = () -> {};

  /** Until when its process may return to claim it; 0 if it is connected. */
  volatile long awaitedUntilNs;

  RemoteLease(
      String id, GpuSeat seat, long turnNs, VirtualGpuRequest request, ProcessIdentity owner) {
    this.id = id;
    this.seat = seat;
    this.limited = isLimited(request);
    this.gate =
        new RemoteGate(
            id,
            seat,
            MOST_GUESSED_TURNS * turnNs,
            () -> owner.state() != ProcessIdentity.State.ALIVE);
  }

  private static boolean isLimited(VirtualGpuRequest request) {
    return request.policy() == SharePolicy.FIXED_SHARE;
  }

  Booking booking() {
    Booking made = booking;
    if (made == null) {
      throw new IllegalStateException("not booked: id=" + id);
    }
    return made;
  }

  @Override
  public TurnGate gate() {
    return gate;
  }

  @Override
  public @Nullable InProcessGate localGate() {
    return null;
  }

  @Override
  public void booked(Booking made, TenantGate tenant) {
    booking = made;
    gate.belongTo(tenant, limited);
  }

  @Override
  public UsageReading usage() {
    return gate.usage();
  }

  @Override
  public boolean isClosed() {
    return closed.get();
  }

  /** False while its process is disconnected but expected to return. */
  @Override
  public boolean isUsageKnown() {
    return awaitedUntilNs == 0 || isClosed();
  }

  /** Returns whether this call closed it. */
  boolean close() {
    return closed.compareAndSet(false, true);
  }

  @Override
  public @Nullable String tryResize(VirtualGpuRequest request, TenantGate tenant) {
    seat.take();
    String obstacle;
    try {
      obstacle = tenant.tryResize(request);
    } finally {
      seat.stepAndLeave();
    }
    if (obstacle == null) {
      gate.belongTo(tenant, isLimited(request));
    }
    return obstacle;
  }

  @Override
  public boolean canReclaim() {
    return hasReclaimHandler && session != null;
  }

  @Override
  public void reclaim(long wantedBytes, Runnable answered) {
    ClientSession to = session;
    if (to == null) {
      answered.run();
    } else {
      reclaimAnswered = answered;
      to.reclaim(id, wantedBytes);
    }
  }

  /** Records that its process has freed what it can. */
  void reclaimed() {
    reclaimAnswered.run();
  }

  @Override
  public void released() {
    ClientSession of = session;
    if (of != null) {
      of.released(this); // if it was never granted, its process does not close it
    }
  }
}
