package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Koordinator: percent of cores and memory, divided among GPUs; QoS and priority by name. */
final class KoordinatorWords implements Vocabulary {
  static final String GPU = "koordinator.sh/gpu";
  private static final String SHARED = "koordinator.sh/gpu.shared";
  static final String CORE = "koordinator.sh/gpu-core";
  private static final String MEMORY = "koordinator.sh/gpu-memory";
  private static final String RATIO = "koordinator.sh/gpu-memory-ratio";
  private static final String QOS = "koordinator.sh/qosClass";
  private static final int WHOLE = 100;

  @Override
  public Optional<GpuPart> read(PodView pod) {
    if (pod.asked(GPU).isEmpty()) {
      return Optional.empty();
    }
    if (pod.asks(GPU) && (pod.asks(CORE) || pod.asks(RATIO) || pod.asks(MEMORY))) {
      throw new PodRefusedException(
          GPU + " is cores and memory at once: asked " + pod.asked(GPU) + "; say one form");
    }
    String container = pod.asker(List.of(GPU, SHARED, CORE, MEMORY, RATIO));
    int cores = percent(pod, pod.asks(GPU) ? GPU : CORE);
    int ratio = percent(pod, pod.asks(GPU) ? GPU : RATIO);
    MemorySize memory = pod.memory(MEMORY, MemorySize.ofBytes(1));
    if (ratio == 0 && memory.bytes() == 0) {
      throw new PodRefusedException(
          "no memory is asked: " + MEMORY + ", as 8Gi, or " + RATIO + ", 1 to 100, is needed");
    }
    int most = Math.max(cores, ratio);
    int gpus =
        pod.amount(SHARED)
            .map(one -> pod.whole(SHARED, one, 1, 64, "a number of GPUs"))
            .orElse(Math.max(1, most / WHOLE));
    boolean isWhole = cores == gpus * WHOLE && ratio == gpus * WHOLE;
    if (isWhole) {
      return Optional.of(quality(pod, GpuPart.whole("Koordinator", container, gpus)));
    }
    if (cores % gpus != 0 || ratio % gpus != 0 || most > gpus * WHOLE) {
      throw new PodRefusedException(
          "cores="
              + cores
              + " and memory ratio="
              + ratio
              + " do not divide by gpus="
              + gpus
              + " into 1 to 100 percent each; a multiple of "
              + gpus
              + ", at most "
              + gpus * WHOLE
              + ", would fit");
    }
    return Optional.of(
        quality(
            pod,
            GpuPart.shared(
                "Koordinator",
                container,
                gpus,
                cores / gpus,
                MemorySize.ofBytes(memory.bytes() / gpus),
                Math.floorDiv(ratio, gpus))));
  }

  private static int percent(PodView pod, String name) {
    int percent =
        pod.amount(name).map(one -> pod.whole(name, one, 1, 6400, "percent of one GPU")).orElse(0);
    if (percent > WHOLE && percent % WHOLE != 0 && !pod.asks(SHARED)) {
      int below = percent / WHOLE * WHOLE;
      throw new PodRefusedException(
          name
              + " above 100 is whole GPUs: asked "
              + percent
              + ", "
              + below
              + " or "
              + (below + WHOLE)
              + " would fit");
    }
    return percent;
  }

  private static GpuPart quality(PodView pod, GpuPart part) {
    String qos = pod.label(QOS).orElse("");
    String priority = pod.priorityClass();
    boolean isBatch = Set.of("koord-batch", "koord-free").contains(priority);
    if ((qos.equals("BE") && Set.of("koord-prod", "koord-mid").contains(priority))
        || (Set.of("LSE", "LSR").contains(qos) && isBatch)) {
      throw new PodRefusedException(
          QOS
              + " is "
              + qos
              + " and the priority class is "
              + priority
              + ": BE goes with koord-batch or koord-free, the others with koord-prod or"
              + " koord-mid");
    }
    SharePolicy none = SharePolicy.BEST_EFFORT;
    boolean hasShare = part.sharePercent() > 0;
    GpuPart burst = part.isWhole() ? part : part.with(hasShare ? SharePolicy.BURST_SHARE : none);
    GpuPart fixed = part.isWhole() ? part : part.with(hasShare ? SharePolicy.FIXED_SHARE : none);
    return switch (qos) {
      case "LSE", "LSR" -> fixed.with(PreemptionClass.ONLINE);
      case "LS" -> burst.with(isBatch ? PreemptionClass.OFFLINE : PreemptionClass.ONLINE);
      case "BE" -> burst.with(PreemptionClass.OFFLINE);
      case "" ->
          switch (priority) {
            case "koord-prod" -> burst.with(PreemptionClass.ONLINE);
            case "koord-mid" -> burst.with(PreemptionClass.NEARLINE);
            case "koord-batch", "koord-free" -> burst.with(PreemptionClass.OFFLINE);
            default -> burst;
          };
      default ->
          throw new PodRefusedException(QOS + " is " + qos + ": there are LSE, LSR, LS and BE");
    };
  }
}
