package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import java.util.List;
import java.util.Optional;

/** vgpu's own vocabulary. {@link PodRequests} reads class, policy and models for every system. */
final class OwnWords implements Vocabulary {
  static final String SHARE = Driver.NAME + "/" + Driver.SHARE;
  static final String MEMORY = Driver.NAME + "/" + Driver.MEMORY;

  @Override
  public Optional<GpuPart> read(PodView pod) {
    boolean isShared = pod.amount(SHARE).isPresent() || pod.amount(MEMORY).isPresent();
    if (!isShared && !pod.asks(Driver.SLOT)) {
      return Optional.empty();
    }
    int slots =
        pod.amount(Driver.SLOT)
            .map(one -> pod.whole(Driver.SLOT, one, 1, 64, "a number of virtual GPUs"))
            .orElse(1);
    int share = pod.share(SHARE);
    MemorySize memory = pod.memory(MEMORY, MemorySize.ofBytes(1));
    if (memory.bytes() == 0) {
      // A slot beside another system's resources is the room for what those request.
      if (share == 0
          && PodRequests.VOCABULARIES.stream().anyMatch(one -> one != this && speaks(one, pod))) {
        return Optional.empty();
      }
      throw new PodRefusedException(
          MEMORY
              + " is not there: a virtual GPU needs memory, as 8Gi, and may ask "
              + SHARE
              + ", 1 to 100 percent of one GPU");
    }
    String container = pod.asker(List.of(Driver.SLOT, SHARE, MEMORY));
    return Optional.of(GpuPart.shared("vgpu", container, slots, share, memory, 0));
  }

  private static boolean speaks(Vocabulary other, PodView pod) {
    return other.read(pod).isPresent();
  }
}
