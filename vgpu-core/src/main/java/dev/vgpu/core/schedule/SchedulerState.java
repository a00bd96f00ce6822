package dev.vgpu.core.schedule;

import java.util.List;
import java.util.Optional;

/**
 * How one GPU is shared at a moment, and why so. Immutable.
 *
 * @param mode how
 * @param reason why, in words
 * @param holder the virtual GPU that has the turn; of several that share, the first
 * @param turnNs the length of the turns that the holder gets now; 0 if there are none
 * @param switches how often the GPU was handed over so far
 * @param tenants those who have work or an open gate
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
    /** Nobody has work. */
    IDLE,
    /** One tenant has work. */
    ALONE,
    /** Several have their gates open. */
    OVERLAP,
    /** One at a time. */
    STRICT
  }

  /**
   * How one tenant stands.
   *
   * @param id the virtual GPU's name
   * @param hasWork whether it has work
   * @param open whether its gate is open
   * @param heldBack whether it has work and may not use the GPU, because it got too much or is at
   *     its cap
   * @param lagNs what it is owed; negative: what it owes
   */
  public record TenantState(
      String id, boolean hasWork, boolean open, boolean heldBack, double lagNs) {}

  /** Copies the list. */
  public SchedulerState {
    tenants = List.copyOf(tenants);
  }
}
