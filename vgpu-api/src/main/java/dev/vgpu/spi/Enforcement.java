package dev.vgpu.spi;

import dev.vgpu.VgpuException;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.function.Predicate;

/** A backend in operation, in the process that holds the seat. Safe for use by several threads. */
public interface Enforcement extends AutoCloseable {
  /**
   * Prepares a lease for processes, or takes over one that an earlier holder of the seat prepared.
   * In a take-over, its processes, their memory and their use are kept.
   *
   * @param id the virtual GPU's id
   * @param directory the lease's own directory, which exists; all files in it belong to the lease
   * @param gpu the GPU
   * @param request the granted terms
   * @param listener receives the state changes of its processes, on the backend's thread
   * @return the lease, with its gate shut
   * @throws VgpuException if the lease cannot be prepared, for example on a full disk; nothing is
   *     left behind
   */
  EnforcedLease prepare(
      String id,
      Path directory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener);

  /**
   * {@return why a request cannot be served on a GPU now, although it could if others held less;
   * empty if it can} Must be quick: no driver call that may block.
   *
   * @param gpu the GPU
   * @param request the request
   */
  default Optional<String> lack(PhysicalGpu gpu, VirtualGpuRequest request) {
    return Optional.empty();
  }

  /**
   * Makes room for a request that does not fit, by moving the parts of a GPU set aside for leases
   * without processes. Each part is set aside again elsewhere on the same GPU, at the same size. If
   * another process takes the new place first, the lease is {@linkplain EnforcedLease#impaired
   * impaired}. Each moved lease receives {@link EnforcedLease.Listener#disturbed}: a program
   * started under it from now on needs its new environment.
   *
   * @param gpu the GPU
   * @param request the request
   * @param mayMove whether a lease, given its id, has no processes and may be moved
   * @return the moved leases, in words; empty if the request fits already, or if moving would not
   *     help
   * @throws VgpuException if the driver fails
   */
  default List<String> makeRoom(
      PhysicalGpu gpu, VirtualGpuRequest request, Predicate<String> mayMove) {
    return List.of();
  }

  /**
   * Requests a sign of life from the backend: the thread that serves its processes answers on its
   * next round, or the backend for it if it sleeps until there is work. If no answer comes for
   * long, the seat is given up. Must not block.
   *
   * @param answers called once, soon, on any thread; by default at once, for a backend without such
   *     a thread
   */
  default void whenServing(Runnable answers) {
    answers.run();
  }

  /** Stops enforcing. Leases stay as they are for the next holder of the seat. */
  @Override
  void close();
}
