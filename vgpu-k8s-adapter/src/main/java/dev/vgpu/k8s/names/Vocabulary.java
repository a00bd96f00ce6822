package dev.vgpu.k8s.names;

import java.util.List;
import java.util.Optional;

/** One system's vocabulary for parts of GPUs. */
interface Vocabulary {
  /** All vocabularies. */
  List<Vocabulary> ALL =
      List.of(
          new OwnWords(),
          new GpushareWords(),
          new GpuManagerWords(),
          new QgpuWords(),
          VgpuCountWords.HAMI,
          VgpuCountWords.VOLCANO,
          new KoordinatorWords(),
          new KaiWords());

  /**
   * {@return what the pod requests in this vocabulary; empty if nothing}
   *
   * @throws PodRefusedException if the request contradicts itself, or no GPU has so much
   */
  Optional<GpuPart> read(PodView pod);
}
