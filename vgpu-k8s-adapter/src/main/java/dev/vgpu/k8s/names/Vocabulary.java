package dev.vgpu.k8s.names;

import java.util.Optional;

/** One system's vocabulary for parts of GPUs. */
interface Vocabulary {
  /**
   * {@return what the pod requests in this vocabulary; empty if nothing}
   *
   * @throws PodRefusedException if the request contradicts itself, or no GPU has so much
   */
  Optional<GpuPart> read(PodView pod);
}
