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
   * its processes are still there, and their memory and use are kept.
   *
   * @param id the virtual GPU's name
   * @param directory the lease's own, which exists; its files are the lease's own
   * @param gpu the GPU
   * @param request the granted terms
   * @param listener receives its processes' state changes, on the backend's thread
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
   * @param request the request
   */
  default Optional<String> lack(PhysicalGpu gpu, VirtualGpuRequest request) {
    return Optional.empty();
  }

  /**
   * Makes room for a request that finds none, by setting the parts of a GPU aside anew that leases
   * without any process have: elsewhere on the GPU, and as large. A part that cannot be set aside
   * again there, since another process was quicker, is {@linkplain EnforcedLease#impaired
   * impaired}. A moved lease is told by {@link EnforcedLease.Listener#disturbed}: a program that
   * starts under it from now on needs its new environment.
   *
   * @param gpu the GPU
   * @param request the request
   * @param mayMove whether a lease, by its id, is without processes and may be moved
   * @return the moved leases, in words; empty if it fits as it is, or if moving would not help
   * @throws VgpuException if the driver fails
   */
  default List<String> makeRoom(
      PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    return List.of();
  }

  /**
   * Asks for a sign that the backend serves its processes: the thread that does so answers when it
   * comes by. A seat from which no answer comes for long is given up. Must not block.
   *
   * @param answers is called once, soon, on any thread; by default at once, for a backend that has
   *     no such thread
   */
  default void whenServing(Runnable answers) {
    answers.run();
  }

  /** Stops. Leases stay as they are, for the next holder of the seat. */
  @Override
  void close();
}
