package dev.vgpu.core.pool;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;

/** What turns inside this JVM can enforce, on any accelerator. */
final class InProcessBackend {
  static final String NAME = "in-process";

  static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.SOFT)
          .compute(Capabilities.Compute.TURNS)
          .preemption(Capabilities.Preemption.BETWEEN_CALLS)
          .worksFor(Capabilities.Scope.THIS_JVM)
          .build();

  private InProcessBackend() {}

  static BackendStatus status() {
    return BackendStatus.ofAvailable(NAME, CAPABILITIES);
  }
}
