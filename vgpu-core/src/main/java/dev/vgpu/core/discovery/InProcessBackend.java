package dev.vgpu.core.discovery;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;

/** What turns inside this JVM can enforce, on any accelerator. */
public final class InProcessBackend {
  /** The backend's name. */
  public static final String NAME = "in-process";

  /** What turns in this JVM enforce. */
  public static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.SOFT)
          .compute(Capabilities.Compute.TURNS)
          .preemption(Capabilities.Preemption.BETWEEN_CALLS)
          .worksFor(Capabilities.Scope.THIS_JVM)
          .build();

  private InProcessBackend() {}

  /** {@return that it can be used} */
  public static BackendStatus status() {
    return BackendStatus.ofAvailable(NAME, CAPABILITIES);
  }
}
