package dev.vgpu.spi;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuId;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/**
 * One way to enforce virtual GPUs on whole processes. A module that has one implements it; {@code
 * ServiceLoader} finds it. Safe for use by several threads.
 */
public interface EnforcementBackend {
  /** {@return the name that people see, for example {@code cuda-hook}} */
  String name();

  /** {@return whether it can work here, or why not} Must not throw and leaves nothing behind. */
  BackendStatus status();

  /** {@return the capabilities that it enforces where it works} */
  Capabilities capabilities();

  /**
   * {@return whether it can enforce on a GPU}
   *
   * @param gpu one of the pool's
   */
  boolean serves(PhysicalGpu gpu);

  /**
   * {@return the cost of being served by it, on a scale without a unit: of the backends that meet
   * the demands, the pool chooses the cheapest} As a guide, 100: turns by a hook; 200: a service
   * runs on the GPU as well; 300: a part of the GPU is set aside, used or not.
   */
  default int cost() {
    return 100;
  }

  /**
   * {@return why it cannot enforce on a GPU which it {@linkplain #serves serves}, and what to do
   * about it; empty if it can} For example a mode that is off, or a privilege that this process
   * lacks. Must not throw. May take some milliseconds.
   *
   * @param gpu one of the pool's
   */
  default Optional<String> obstacle(PhysicalGpu gpu) {
    return Optional.empty();
  }

  /**
   * {@return why it could never serve a request on a GPU, even on an empty GPU; empty if it could}
   * Must not throw.
   *
   * @param gpu one of the pool's, that it serves, without an {@linkplain #obstacle obstacle}
   * @param request the request
   */
  default Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return Optional.empty();
  }

  /**
   * {@return whether a lease is prepared when it is granted, since a part of the GPU has to be set
   * aside for it; else that is done when its first program comes}
   */
  default boolean preparesWhenGranted() {
    return false;
  }

  /**
   * {@return the capabilities that another backend has to enforce beneath this one, which stands on
   * it: see {@link #open(Path, Enforcement)}; empty if it stands on none}
   */
  default Optional<Capabilities> needs() {
    return Optional.empty();
  }

  /**
   * {@return the GPUs that are parts which this backend has set aside for leases: they are no GPUs
   * of the pool} Asked where a GPU is {@linkplain PhysicalGpu#unusableAsWhole unusable as a whole}.
   * Must not throw.
   *
   * @param runDirectory the node's; may hold files of an earlier holder of the seat
   */
  default Set<GpuId> partsSetAside(Path runDirectory) {
    return Set.of();
  }

  /**
   * {@return whether an earlier holder of the seat left something to be ended or looked after, for
   * which it is opened when the seat is taken} Else it is opened when it is first used. Must not
   * throw.
   *
   * @param runDirectory the node's
   */
  default boolean hasLeftovers(Path runDirectory) {
    return false;
  }

  /**
   * Begins to enforce, for a backend that {@linkplain #needs needs} another. It prepares a lease of
   * the other beneath each of its own ({@link ForwardingLease}), on the same GPU or on the part of
   * it that it has set aside.
   *
   * @param runDirectory as for {@link #open(Path)}
   * @param beneath the other, at work; not to be closed by this one
   * @return the enforcement
   * @throws VgpuException if it cannot; the message says why
   */
  default Enforcement open(Path runDirectory, Enforcement beneath) {
    return open(runDirectory);
  }

  /**
   * Begins to enforce. Called by the process that has just taken the seat, once; it is alone.
   *
   * @param runDirectory the node's; may hold files of an earlier holder of the seat
   * @return the enforcement, which that process closes when it gives up the seat
   * @throws VgpuException if it cannot; the message says why
   */
  Enforcement open(Path runDirectory);

  /**
   * {@return the variables, mounts and devices that a container needs to run under a lease; of a
   * backend that stands on another, only its own}
   *
   * @param environment the variables of {@link EnforcedLease#environment()}, with the GPU's own
   * @throws VgpuException if this backend cannot put containers under a lease here
   */
  default ContainerSpec containerSpec(Map<String, String> environment) {
    throw new VgpuException(name() + " cannot put containers under a virtual GPU");
  }

  /**
   * Puts this very process under a lease, the first or one more. Blocks until it is attached, some
   * milliseconds. The first is also that of threads which are bound to none.
   *
   * @param environment the variables of {@link EnforcedLease#environment()}, with the GPU's own
   * @return its part under the lease; close it when the lease ends
   * @throws IllegalStateException if it comes too late, or this process is under this lease already
   * @throws VgpuException if it cannot; the message says why
   */
  ProcessAttachment attachThisProcess(Map<String, String> environment);
}
