package dev.vgpu.k8s.names;

import java.util.List;
import java.util.Optional;

/** One system's words for parts of GPUs. */
interface Vocabulary {
  /** All of them. */
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
   * {@return what the pod asks in these words; empty: nothing}
   *
   * @throws PodRefusedException if the words contradict each other, or no GPU has so much
   */
  Optional<GpuPart> read(PodView pod);
}
