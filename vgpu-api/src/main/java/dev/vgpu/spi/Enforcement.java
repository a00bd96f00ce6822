package dev.vgpu.spi;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

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

  /**
   * Makes room for a request that finds none, by setting the parts of a GPU aside anew that leases
   * without any process have: elsewhere on the GPU, and as large. What cannot be set aside again
   * there, since somebody else was quicker, is {@linkplain EnforcedLease#impaired impaired}. A
   * lease that was moved is told so by {@link EnforcedLease.Listener#disturbed}: who starts a
   * program under it from now on needs its environment anew.
   *
   * @param gpu the GPU
   * @param request what is asked
   * @param mayMove whether a lease, by its id, is without processes and may be moved
   * @return what was moved, in words; empty: it fits as it is, or that would not help
   * @throws VgpuException if the driver fails
   */
  default List<String> makeRoom(
      PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    return List.of();
  }

  /** Stops. Leases stay as they are, for the next holder of the seat. */
  @Override
  void close();
}
