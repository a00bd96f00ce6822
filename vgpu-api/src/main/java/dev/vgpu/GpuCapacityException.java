package dev.vgpu;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * What was asked for does not fit beside what others hold. The caller can wait ({@link
 * GpuPool#tryAcquire}), ask for less, or go elsewhere. The message says what was asked, what was
 * free, and who holds the rest.
 */
public final class GpuCapacityException extends VgpuException {
  private static final long serialVersionUID = 1L;

  private final transient List<GpuLease> holders;

  /**
   * Makes one.
   *
   * @param message what was asked and what was free
   * @param holders who holds what is not free
   */
  public GpuCapacityException(String message, List<? extends GpuLease> holders) {
    super(message);
    this.holders = List.copyOf(requireNonNull(holders, "holders"));
  }

  /** {@return who held what was not free when this was thrown; empty after deserialization} */
  public List<GpuLease> holders() {
    return holders == null ? List.of() : holders;
  }
}
