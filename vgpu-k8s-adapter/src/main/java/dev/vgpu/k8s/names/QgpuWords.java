package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;

/**
 * qGPU: cores in percent, memory in GiB. Online pods request memory only, offline ones greedy
 * cores. Multiples of 100 cores are whole GPUs. Other numbers above 100 are in equal parts on
 * several GPUs, as is the memory, without the remainders
 * (https://cloud.tencent.com/document/product/457/127667).
 */
final class QgpuWords implements Vocabulary {
  private static final String DOMAIN = "tke.cloud.tencent.com/";
  static final String CORE = DOMAIN + "qgpu-core";
  private static final String GREEDY = DOMAIN + "qgpu-core-greedy";
  static final String MEMORY = DOMAIN + "qgpu-memory";
  private static final String CLASS = DOMAIN + "app-class";
  private static final int WHOLE = GpuManagerWords.WHOLE;

  @Override
  public Optional<GpuPart> read(PodView pod) {
    if (pod.asked(DOMAIN + "qgpu-").isEmpty()) {
      return Optional.empty();
    }
    String container = pod.asker(List.of(CORE, GREEDY, MEMORY));
    String appClass = pod.annotation(CLASS).orElse("");
    boolean isGreedy = pod.asks(GREEDY);
    if (isGreedy != appClass.equals("offline") || (pod.asks(CORE) && !appClass.isEmpty())) {
      throw new PodRefusedException(
          CLASS
              + " is '"
              + appClass
              + "' and contradicts "
              + pod.asked(DOMAIN)
              + ": offline pods ask "
              + GREEDY
              + ", online pods memory alone, others "
              + CORE);
    }
    int cores = cores(pod);
    if (cores >= WHOLE && cores % WHOLE == 0 && !isGreedy) {
      return Optional.of(GpuPart.whole("qGPU", container, cores / WHOLE));
    }
    int gpus = Math.max(1, (cores + WHOLE - 1) / WHOLE);
    GpuPart part =
        GpuPart.shared("qGPU", container, gpus, cores / gpus, memory(pod, gpus), 0)
            .with(cores > 0 ? SharePolicy.BURST_SHARE : SharePolicy.BEST_EFFORT);
    return Optional.of(
        switch (appClass) {
          case "" -> part;
          case "online" -> part.with(PreemptionClass.ONLINE);
          case "offline" -> part.with(PreemptionClass.OFFLINE);
          default ->
              throw new PodRefusedException(
                  CLASS + " is " + appClass + ": there are online and offline");
        });
  }

  private static int cores(PodView pod) {
    BigDecimal said = pod.asks(CORE) ? pod.amount(CORE).orElse(null) : null;
    if (said == null) {
      return pod.share(GREEDY);
    }
    return pod.asks(MEMORY)
        ? pod.whole(CORE, said, 1, GpuManagerWords.MOST, "percent of one GPU")
        : GpuManagerWords.cores(pod, CORE);
  }

  private static MemorySize memory(PodView pod, int gpus) {
    MemorySize unit = MemorySize.ofGibibytes(1);
    long each = pod.memory(MEMORY, unit).bytes() / unit.bytes() / gpus;
    if (each == 0) {
      throw new PodRefusedException(
          MEMORY + " is not there, or less than 1 for each GPU: it counts GiB");
    }
    return MemorySize.ofGibibytes(each);
  }
}
