package dev.vgpu.k8s.names;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import java.util.List;
import java.util.Optional;

/**
 * qGPU: cores in percent, memory in GiB. Online pods request memory only, offline ones greedy
 * cores.
 */
final class QgpuWords implements Vocabulary {
  private static final String DOMAIN = "tke.cloud.tencent.com/";
  private static final String CORE = DOMAIN + "qgpu-core";
  private static final String GREEDY = DOMAIN + "qgpu-core-greedy";
  static final String MEMORY = DOMAIN + "qgpu-memory";
  private static final String CLASS = DOMAIN + "app-class";

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
    int cores = pod.asks(CORE) ? GpuManagerWords.cores(pod, CORE) : pod.share(GREEDY);
    if (cores >= GpuManagerWords.WHOLE && !isGreedy) {
      return Optional.of(GpuPart.whole("qGPU", container, cores / GpuManagerWords.WHOLE));
    }
    MemorySize memory = pod.memory(MEMORY, MemorySize.ofGibibytes(1));
    if (memory.bytes() == 0) {
      throw new PodRefusedException(MEMORY + " is not there: it counts GiB");
    }
    GpuPart part =
        GpuPart.shared("qGPU", container, 1, cores, memory, 0)
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
}
