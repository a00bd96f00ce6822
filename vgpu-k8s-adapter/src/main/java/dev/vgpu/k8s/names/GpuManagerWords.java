package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;

/** gpu-manager: 100 cores are one GPU; memory is in units of 256 MiB. */
final class GpuManagerWords implements Vocabulary {
  static final int WHOLE = 100;
  static final String CORE = "tencent.com/vcuda-core";
  private static final String MEMORY = "tencent.com/vcuda-memory";
  private static final String LIMIT = "tencent.com/vcuda-core-limit";
  static final int MOST = 6400;

  @Override
  public Optional<GpuPart> read(PodView pod) {
    if (!pod.asks(CORE) && !pod.asks(MEMORY)) {
      return Optional.empty();
    }
    String container = pod.asker(List.of(CORE, MEMORY));
    int cores = cores(pod, CORE);
    if (cores >= WHOLE) {
      return Optional.of(GpuPart.whole("gpu-manager", container, cores / WHOLE));
    }
    MemorySize memory = pod.memory(MEMORY, MemorySize.ofMebibytes(256));
    if (memory.bytes() == 0) {
      throw new PodRefusedException(
          MEMORY + " is not there: less than a GPU needs memory, in units of 256 MiB");
    }
    int limit =
        pod.annotation(LIMIT)
            .map(
                text ->
                    pod.whole(LIMIT, PodView.number(LIMIT, text), 1, WHOLE, "percent of one GPU"))
            .orElse(cores);
    if (limit < cores) {
      throw new PodRefusedException(
          LIMIT + " is " + limit + ", less than " + CORE + ", which is " + cores);
    }
    return Optional.of(
        GpuPart.shared("gpu-manager", container, 1, cores, memory, 0)
            .with(limit > cores ? SharePolicy.BURST_SHARE : SharePolicy.FIXED_SHARE));
  }

  /** {@return 1 to 99, or a multiple of 100} */
  static int cores(PodView pod, String name) {
    BigDecimal said =
        pod.amount(name)
            .orElseThrow(
                () -> new PodRefusedException(name + " is not there: 100 of them are one GPU"));
    int cores = pod.whole(name, said, 1, MOST, "percent of one GPU");
    if (cores > WHOLE && cores % WHOLE != 0) {
      int below = cores / WHOLE * WHOLE;
      throw new PodRefusedException(
          name
              + " above 100 is whole GPUs: asked "
              + cores
              + ", "
              + below
              + " or "
              + (below + WHOLE)
              + " would fit");
    }
    return cores;
  }
}
