package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;

/** gpushare: memory in GiB, in equal parts over several GPUs; its later form has a share. */
final class GpushareWords implements Vocabulary {
  static final String MEMORY = "aliyun.com/gpu-mem";
  private static final String COUNT = "aliyun.com/gpu-count";
  private static final String CORE = "aliyun.com/gpu-core.percentage";

  @Override
  public Optional<GpuPart> read(PodView pod) {
    if (!pod.asks(MEMORY) && !pod.asks(CORE)) {
      return Optional.empty();
    }
    MemorySize memory = pod.memory(MEMORY, MemorySize.ofGibibytes(1));
    if (memory.bytes() == 0) {
      throw new PodRefusedException(CORE + " needs " + MEMORY + ", in GiB, beside it");
    }
    BigDecimal said =
        pod.amount(COUNT)
            .or(() -> pod.label(COUNT).map(text -> PodView.number(COUNT, text)))
            .orElse(BigDecimal.ONE);
    int gpus = pod.whole(COUNT, said, 1, 64, "a number of GPUs");
    int share = pod.share(CORE);
    MemorySize each = MemorySize.ofBytes(memory.bytes() / gpus);
    String container = pod.asker(List.of(MEMORY, CORE));
    return Optional.of(
        GpuPart.shared("gpushare", container, gpus, share, each, 0)
            .with(share > 0 ? SharePolicy.FIXED_SHARE : SharePolicy.BEST_EFFORT));
  }
}
