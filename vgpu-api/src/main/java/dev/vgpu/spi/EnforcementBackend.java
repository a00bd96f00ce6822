package dev.vgpu.spi;

import dev.vgpu.ContainerSpec;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * One way to enforce virtual GPUs on whole processes. Implementations are found by {@code
 * ServiceLoader}. Safe for use by several threads.
 */
public interface EnforcementBackend {
  /** {@return the name that people see, for example {@code cuda-hook}} */
  String name();

  /**
   * {@return whether it can work here, or why not} Must not throw, and must leave nothing behind.
   */
  BackendStatus status();

  /** {@return the capabilities that it enforces where it works} */
  Capabilities capabilities();

  /**
   * {@return whether it can enforce on a GPU}
   *
   * @param gpu one of the pool's GPUs
   */
  boolean serves(PhysicalGpu gpu);

  /**
   * {@return the cost of using this backend, on a unitless scale} Of the backends that meet the
   * demands, the pool chooses the cheapest. As a guide, 100: turns enforced by a hook; 200: a
   * service also runs on the GPU; 300: a part of the GPU is set aside, used or not.
   */
  default int cost() {
    return 100;
  }

  /**
   * {@return why it cannot enforce on a GPU that it {@linkplain #serves serves}, and the remedy;
   * empty if it can} For example a mode that is off, or a privilege that this process lacks. Must
   * not throw. May take some milliseconds.
   *
   * @param gpu one of the pool's GPUs
   */
  default Optional<String> obstacle(PhysicalGpu gpu) {
    return Optional.empty();
  }

  /**
   * {@return why it could never serve a request on a GPU, even if the GPU were empty; empty if it
   * could} Must not throw.
   *
   * @param gpu a GPU of the pool that it serves without an {@linkplain #obstacle obstacle}
   * @param request the request
   */
  default Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return Optional.empty();
  }

  /**
   * {@return the parts of a GPU that a request can name, whatever is in use; empty if this backend
   * makes no such parts} For {@link dev.vgpu.GpuPool#parts}.
   *
   * @param gpu one of the pool's GPUs
   * @throws VgpuException if the driver fails
   */
  default List<GpuPart> parts(PhysicalGpu gpu) {
    return List.of();
  }

  /**
   * {@return whether a lease is prepared when it is granted, because a part of the GPU must be set
   * aside for it} Otherwise it is prepared when its first program starts.
   */
  default boolean preparesWhenGranted() {
    return false;
  }

  /**
   * {@return whether all that it changes lies in the run directory, before its first program
   * starts} A client of the seat then rehearses a take-over with it, in a directory of its own, so
   * that a real one finds its classes and libraries loaded.
   */
  default boolean keepsToRunDirectory() {
    return false;
  }

  /**
   * {@return what the backend beneath must enforce, if this backend is built on another one; empty
   * if it is not} See {@link #open(Path, Enforcement)}.
   */
  default Optional<Capabilities> needs() {
    return Optional.empty();
  }

  /**
   * {@return the parts of GPUs that this backend has set aside for leases; the pool does not list
   * them as GPUs} Called if a GPU is {@linkplain PhysicalGpu#unusableAsWhole unusable as a whole}.
   * Must not throw.
   *
   * @param runDirectory the node's run directory; may hold files of an earlier holder of the seat
   */
  default Set<GpuId> partsSetAside(Path runDirectory) {
    return Set.of();
  }

  /**
   * {@return whether an earlier holder of the seat left something to clean up or look after} If so,
   * the backend is opened when the seat is taken; otherwise at its first use. Must not throw.
   *
   * @param runDirectory the node's run directory
   */
  default boolean hasLeftovers(Path runDirectory) {
    return false;
  }

  /**
   * Starts enforcing, for a backend that {@linkplain #needs needs} another. For each of its leases
   * it prepares a lease of the other backend beneath ({@link ForwardingLease}), on the same GPU or
   * on the part that it has set aside there.
   *
   * @param runDirectory as for {@link #open(Path)}
   * @param beneath the other backend's enforcement; the caller closes it
   * @return the enforcement
   * @throws VgpuException if it cannot start; the message says why
   */
  default Enforcement open(Path runDirectory, Enforcement beneath) {
    return open(runDirectory);
  }

  /**
   * Starts enforcing. Called once, by the process that has just taken the seat; no other process
   * enforces then.
   *
   * @param runDirectory the node's run directory; may hold files of an earlier holder of the seat
   * @return the enforcement; that process closes it when it gives up the seat
   * @throws VgpuException if it cannot start; the message says why
   */
  Enforcement open(Path runDirectory);

  /**
   * {@return the variables, mounts and devices that a container needs to run under a lease} A
   * backend built on another one returns only its own.
   *
   * @param environment the variables of {@link EnforcedLease#environment()} and those of the GPU
   * @throws VgpuException if this backend cannot put containers under a lease here
   */
  default ContainerSpec containerSpec(Map<String, String> environment) {
    throw new VgpuException(name() + " cannot put containers under a virtual GPU");
  }

  /**
   * Checks a program as {@link EnforcedLease#check} does, in the process that starts it. Called if
   * another user's process holds the seat: it must not open files that this process names.
   *
   * @param executable the path of the program
   * @throws VgpuException if the program cannot be put under a lease; the message says why
   */
  default void check(Path executable) {}

  /**
   * Makes the kernel refuse open files that other processes pass to a listening Unix socket of this
   * process with their messages, if it can. Called in the process that has just taken the seat,
   * before other users can connect. The kernel ends such files in the thread that reads the message
   * or closes the connection, which may take as long as the sender likes. Must not throw.
   *
   * @param socket the path of the socket, which has accepted no connection yet
   * @return what finds such files before they are read, if the kernel does not refuse them; empty
   *     if it does, or if this backend cannot find them
   */
  default Optional<UnreadFiles> refuseFiles(Path socket) {
    return Optional.empty();
  }

  /**
   * Puts this process under a lease; it may already be under others. Blocks until it is attached,
   * for some milliseconds. The first lease also serves threads that are bound to none.
   *
   * @param environment the variables of {@link EnforcedLease#environment()} and those of the GPU
   * @return the attachment; close it when the lease ends
   * @throws IllegalStateException if the driver is already loaded, or if this process is already
   *     under this lease
   * @throws VgpuException if the process cannot be put under it; the message says why
   */
  ProcessAttachment attachThisProcess(Map<String, String> environment);
}
