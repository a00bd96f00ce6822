package dev.vgpu.core.discovery;

import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.Capabilities;

/** The backend that enforces turns inside this JVM, on any accelerator. */
public final class InProcessBackend {
  /** The backend's name. */
  public static final String NAME = "in-process";

  /** What it enforces. */
  public static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.SOFT)
          .compute(Capabilities.Compute.TURNS)
          .preemption(Capabilities.Preemption.BETWEEN_CALLS)
          .worksFor(Capabilities.Scope.THIS_JVM, Capabilities.Scope.OTHER_USERS)
          .build();

  private InProcessBackend() {}

  /** {@return its status: always available} */
  public static BackendStatus status() {
    return BackendStatus.ofAvailable(NAME, CAPABILITIES);
  }
}
