package dev.vgpu.core.schedule;

import java.util.List;
import java.util.Optional;

/**
 * How one GPU is shared at one moment, and why. Immutable.
 *
 * @param mode how it is shared
 * @param reason why, in words
 * @param holder the virtual GPU that has the turn; the first if several share
 * @param turnNs the length of the holder's turns now; 0 if there are none
 * @param switches how often the GPU has been handed over
 * @param tenants the tenants that have work or an open gate
 */
public record SchedulerState(
    Mode mode,
    String reason,
    Optional<String> holder,
    long turnNs,
    long switches,
    List<TenantState> tenants) {
  /** How a GPU is shared. */
  public enum Mode {
    /** No tenant has work. */
    IDLE,
    /** One tenant has work. */
    ALONE,
    /** Several tenants have their gates open. */
    OVERLAP,
    /** One tenant at a time. */
    STRICT
  }

  /**
   * The state of one tenant.
   *
   * @param id the virtual GPU's id
   * @param hasWork whether it has work
   * @param open whether its gate is open
   * @param heldBack whether it has work and is at its fixed share; only such tenants are held back
   * @param lagNs what it is owed, in nanoseconds; negative if it owes
   */
  public record TenantState(
      String id, boolean hasWork, boolean open, boolean heldBack, double lagNs) {}

  /** Copies the list. */
  public SchedulerState {
    tenants = List.copyOf(tenants);
  }
}
