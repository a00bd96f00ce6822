package dev.vgpu.core.book;

import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.turn.InProcessGate;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.turn.UsageReading;
import dev.vgpu.request.VirtualGpuRequest;
import org.jspecify.annotations.Nullable;

/** The calls of a booked virtual GPU, made in this JVM or in another process. */
public interface BookedCalls {
  /** The gate that the scheduler opens and shuts for the calls. */
  TurnGate gate();

  /** The gate, if the calls are made in this JVM; otherwise null. */
  @Nullable InProcessGate localGate();

  /** Called once when the virtual GPU has been booked, before any other method. */
  void booked(Booking booking, TenantGate tenant);

  /** The use of the calls until now. */
  UsageReading usage();

  /** Whether the use of the calls is known now. */
  default boolean isUsageKnown() {
    return true;
  }

  /** Whether the owner has closed it. */
  boolean isClosed();

  /**
   * Replaces the granted terms; returns why not if it cannot. Called with the table's lock held.
   */
  @Nullable String tryResize(VirtualGpuRequest request, TenantGate tenant);

  /** Whether the owner can be asked to free memory. */
  default boolean canReclaim() {
    return false;
  }

  /**
   * Asks the owner to free memory. Returns at once.
   *
   * @param wantedBytes how much is missing
   * @param answered run on any thread when the owner has freed what it can
   */
  default void reclaim(long wantedBytes, Runnable answered) {
    answered.run();
  }

  /** Called when the virtual GPU has been booked out. */
  void released();
}
