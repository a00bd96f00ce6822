package dev.vgpu.spi;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.ContainerSpec;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import java.nio.file.Path;
import java.util.Map;

/**
 * One way to enforce virtual GPUs on whole processes. A module that has one implements it; {@code
 * ServiceLoader} finds it. Safe for use by several threads.
 */
public interface EnforcementBackend {
  /** {@return the name that people see, for example {@code cuda-hook}} */
  String name();

  /** {@return whether it can work here, or why not} Must not throw and leaves nothing behind. */
  BackendStatus status();

  /** {@return what it enforces where it works} */
  Capabilities capabilities();

  /**
   * {@return whether it can enforce on a GPU}
   *
   * @param gpu one of the pool's
   */
  boolean serves(PhysicalGpu gpu);

  /**
   * Begins to enforce. Called by the process that has just taken the seat, once; it is alone.
   *
   * @param runDirectory the node's; may hold what an earlier holder of the seat left
   * @return the enforcement, which that process closes when it gives up the seat
   * @throws VgpuException if it cannot; the message says why
   */
  Enforcement open(Path runDirectory);

  /**
   * {@return what a container needs in order to run under a lease}
   *
   * @param environment what {@link EnforcedLease#environment()} said, with the GPU's own variables
   * @throws VgpuException if this backend cannot put containers under a lease here
   */
  default ContainerSpec containerSpec(Map<String, String> environment) {
    throw new VgpuException(name() + " cannot put containers under a virtual GPU");
  }

  /**
   * Puts this very process under a lease. Blocks until it is attached, some milliseconds.
   *
   * @param environment what {@link EnforcedLease#environment()} said, with the GPU's own variables
   * @throws IllegalStateException if it comes too late, or this process is under a lease already
   * @throws VgpuException if it cannot; the message says why
   */
  void attachThisProcess(Map<String, String> environment);
}
