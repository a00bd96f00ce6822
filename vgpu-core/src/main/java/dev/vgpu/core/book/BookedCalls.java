package dev.vgpu.core.book;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.schedule.TurnGate;
import dev.vgpu.core.turn.InProcessGate;
import dev.vgpu.core.turn.TenantGate;
import dev.vgpu.core.turn.UsageReading;
import org.jspecify.annotations.Nullable;

/** The calls under a booked virtual GPU: made in this JVM, or in another process. */
public interface BookedCalls {
  /** What the scheduler opens and shuts for them. */
  TurnGate gate();

  /** The gate, if its calls are made in this JVM. */
  @Nullable InProcessGate localGate();

  /** It was booked. Called once, before anything else. */
  void booked(Booking booking, TenantGate tenant);

  /** What they used until now. */
  UsageReading usage();

  /** Whether it is known now what they used. */
  default boolean isUsageKnown() {
    return true;
  }

  /** Whether the owner has closed it. */
  boolean isClosed();

  /** Replaces what is granted, or says why not. Called with the table's lock held. */
  @Nullable String tryResize(VirtualGpuRequest request, TenantGate tenant);

  /** Whether the owner can be asked to free memory. */
  default boolean canReclaim() {
    return false;
  }

  /**
   * Asks the owner to free memory. Returns at once.
   *
   * @param wantedBytes how much is missing
   * @param answered run on any thread when it has freed what it can
   */
  default void reclaim(long wantedBytes, Runnable answered) {
    answered.run();
  }

  /** It was booked out. */
  void released();
}
