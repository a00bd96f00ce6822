package dev.vgpu.k8s.names;

import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;

/**
 * HAMi and Volcano's device sharing, which use a number of GPUs. For each GPU, memory is in MiB or
 * percent, and cores are in percent, where 0 guarantees nothing. A number without either, which is
 * also NVIDIA's own form, means whole GPUs.
 */
final class VgpuCountWords implements Vocabulary {
  static final String HAMI_COUNT = "nvidia.com/gpu";
  static final String VOLCANO_COUNT = "volcano.sh/vgpu-number";
  static final Vocabulary HAMI =
      new VgpuCountWords(
          "HAMi",
          HAMI_COUNT,
          "nvidia.com/gpumem",
          "nvidia.com/gpumem-percentage",
          "nvidia.com/gpucores");
  static final Vocabulary VOLCANO =
      new VgpuCountWords(
          "Volcano",
          VOLCANO_COUNT,
          "volcano.sh/vgpu-memory",
          "volcano.sh/vgpu-memory-percentage",
          "volcano.sh/vgpu-cores");

  private static final String PRIORITY = "nvidia.com/priority";
  private static final String TYPES = "nvidia.com/use-gputype";
  private static final String NOT_TYPES = "nvidia.com/nouse-gputype";
  private static final String MODE = "nvidia.com/vgpu-mode";
  private static final String HOOK = "hami-core";
  private static final String BINDING = "GPU_CORE_UTILIZATION_POLICY";

  private final String system;
  private final String count;
  private final String memory;
  private final String percent;
  private final String cores;

  private VgpuCountWords(String system, String count, String memory, String percent, String cores) {
    this.system = system;
    this.count = count;
    this.memory = memory;
    this.percent = percent;
    this.cores = cores;
  }

  @Override
  public Optional<GpuPart> read(PodView pod) {
    List<String> parts = List.of(memory, percent, cores);
    boolean isShared = parts.stream().anyMatch(pod::asks);
    if (!isShared && !pod.asks(count)) {
      return Optional.empty();
    }
    String container = pod.asker(List.of(count, memory, percent, cores));
    int gpus =
        pod.amount(count).map(one -> pod.whole(count, one, 1, 64, "a number of GPUs")).orElse(1);
    if (!isShared) {
      return Optional.of(extras(pod, GpuPart.whole(system, container, gpus)));
    }
    MemorySize size = pod.memory(memory, MemorySize.ofMebibytes(1));
    int part =
        pod.amount(percent)
            .map(one -> pod.whole(percent, one, 1, 100, "percent of a card's memory"))
            .orElse(0);
    if (size.bytes() > 0 && part > 0) {
      throw new PodRefusedException(memory + " and " + percent + " are both given: say one");
    }
    int share =
        pod.amount(cores)
            .map(one -> pod.whole(cores, one, 0, 100, "percent of one GPU, 0 for no promise"))
            .orElse(0);
    SharePolicy policy = policy(pod.environment(container, BINDING).orElse("default"), share);
    GpuPart asked =
        GpuPart.shared(
                system,
                container,
                gpus,
                policy == SharePolicy.BEST_EFFORT ? 0 : share,
                size,
                size.bytes() == 0 && part == 0 ? 100 : part)
            .with(policy);
    return Optional.of(extras(pod, asked));
  }

  private static SharePolicy policy(String binding, int share) {
    return switch (binding) {
      case "default" -> share > 0 ? SharePolicy.BURST_SHARE : SharePolicy.BEST_EFFORT;
      case "force" -> share > 0 ? SharePolicy.FIXED_SHARE : SharePolicy.BEST_EFFORT;
      case "disable" -> SharePolicy.BEST_EFFORT;
      default ->
          throw new PodRefusedException(
              BINDING + " is " + binding + ": there are default, force and disable");
    };
  }

  private static GpuPart extras(PodView pod, GpuPart asked) {
    if (pod.annotation(NOT_TYPES).isPresent()) {
      throw new PodRefusedException(
          NOT_TYPES + " is not read: name the models that will do in " + TYPES);
    }
    Optional<String> mode = pod.annotation(MODE).filter(text -> !text.equals(HOOK));
    if (mode.isPresent()) {
      throw new PodRefusedException(
          MODE + " is " + mode.get() + ": parts of GPUs are enforced as with " + HOOK + " only");
    }
    GpuPart part =
        pod.annotation(TYPES).map(PodRequests::list).map(asked::withModels).orElse(asked);
    BigDecimal priority = pod.amount(PRIORITY).orElse(null);
    if (priority == null) {
      return KaiWords.isQueued(pod) ? KaiWords.preempted(pod, part) : part;
    }
    boolean isHigh = pod.whole(PRIORITY, priority, 0, 1, "0 for high or 1 for low") == 0;
    return part.with(isHigh ? PreemptionClass.ONLINE : PreemptionClass.OFFLINE);
  }
}
