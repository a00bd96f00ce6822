package dev.vgpu;

import static java.util.Objects.requireNonNull;

import dev.vgpu.watch.GpuLease;
import java.util.List;

/**
 * The request does not fit beside the parts that others hold. The caller can wait ({@link
 * GpuPool#tryAcquire}), ask for less, or go elsewhere. The message says what was asked for, what
 * was free, and which tenants hold the rest.
 */
public final class GpuCapacityException extends VgpuException {
  private static final long serialVersionUID = 1L;

  private final transient List<GpuLease> holders;

  /**
   * Creates the exception.
   *
   * @param message the request and the free part
   * @param holders leases on the part that is not free
   */
  public GpuCapacityException(String message, List<? extends GpuLease> holders) {
    super(message);
    this.holders = List.copyOf(requireNonNull(holders, "holders"));
  }

  /**
   * {@return leases on the part that was not free when this was thrown: at most eight of each GPU,
   * those that have been there longest; empty after deserialization}
   */
  public List<GpuLease> holders() {
    return holders == null ? List.of() : holders;
  }
}
