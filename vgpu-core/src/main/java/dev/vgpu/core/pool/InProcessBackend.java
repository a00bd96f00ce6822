package dev.vgpu.core.pool;

import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.FailureMode;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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

  private static final Logger log = LoggerFactory.getLogger(InProcessBackend.class);

  private InProcessBackend() {}

  static BackendStatus status() {
    return BackendStatus.ofAvailable(NAME, CAPABILITIES);
  }

  /** Refuses, or serves with a warning, a request that demands more than can be enforced. */
  static void check(VirtualGpuRequest request) {
    List<String> missing = CAPABILITIES.missingFor(request.requires());
    if (missing.isEmpty()) {
      return;
    }
    if (request.failureMode() == FailureMode.REFUSE) {
      throw new VgpuException(
          "no backend can enforce what is demanded: "
              + request
              + "; "
              + NAME
              + " lacks "
              + missing);
    }
    log.warn("served without what it demands: {}; {} lacks {}", request, NAME, missing);
  }
}
