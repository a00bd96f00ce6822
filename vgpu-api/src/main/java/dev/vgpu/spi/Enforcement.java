package dev.vgpu.spi;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import java.nio.file.Path;
import java.util.Optional;

/** A backend at work for the seat's holder. Safe for use by several threads. */
public interface Enforcement extends AutoCloseable {
  /**
   * Makes a lease ready for processes, or takes over one that an earlier holder of the seat made:
   * its processes are still there, and what they hold and have used is kept.
   *
   * @param id the virtual GPU's name
   * @param directory the lease's own, which exists; what is in it from before is its own
   * @param gpu the GPU
   * @param request what is granted
   * @param listener is told what its processes do, on the backend's thread
   * @return the lease, shut
   * @throws VgpuException if it cannot, for example on a full disk; nothing is left behind
   */
  EnforcedLease prepare(
      String id,
      Path directory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener);

  /**
   * {@return why a request cannot be served on a GPU now, though it could if others held less;
   * empty if it can} Must be quick: no call of a driver that may block.
   *
   * @param gpu the GPU
   * @param request what is asked
   */
  default Optional<String> lack(PhysicalGpu gpu, VirtualGpuRequest request) {
    return Optional.empty();
  }

  /** Stops. Leases stay as they are, for the next holder of the seat. */
  @Override
  void close();
}
