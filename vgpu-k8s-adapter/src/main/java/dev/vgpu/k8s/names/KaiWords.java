package dev.vgpu.k8s.names;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import java.math.BigDecimal;
import java.util.List;
import java.util.Optional;

/** KAI: annotations with a fraction of a GPU, or MiB; the class follows the priority class. */
final class KaiWords implements Vocabulary {
  private static final String FRACTION = "gpu-fraction";
  private static final String MEMORY = "gpu-memory";
  private static final String COUNT = "gpu-fraction-num-devices";
  private static final String CONTAINER = "gpu-fraction-container-name";
  private static final String WHOLES = "nvidia.com/gpu";

  @Override
  public Optional<GpuPart> read(PodView pod) {
    Optional<String> fraction = pod.annotation(FRACTION);
    Optional<String> memory = pod.annotation(MEMORY);
    if (fraction.isEmpty() && memory.isEmpty()) {
      return Optional.empty();
    }
    if (pod.asks(WHOLES) || (fraction.isPresent() && memory.isPresent())) {
      throw new PodRefusedException(
          "a pod asks one of "
              + FRACTION
              + ", "
              + MEMORY
              + " and "
              + WHOLES
              + ": asked "
              + FRACTION
              + "="
              + fraction.orElse("")
              + " "
              + MEMORY
              + "="
              + memory.orElse("")
              + " "
              + WHOLES
              + "="
              + pod.amount(WHOLES).map(BigDecimal::toPlainString).orElse(""));
    }
    int gpus =
        pod.annotation(COUNT)
            .map(text -> pod.whole(COUNT, PodView.number(COUNT, text), 1, 64, "a number of GPUs"))
            .orElse(1);
    String container = pod.annotation(CONTAINER).orElseGet(() -> pod.asker(List.of()));
    if (memory.isPresent()) {
      MemorySize size = pod.memory(MEMORY, MemorySize.ofMebibytes(1));
      return Optional.of(
          preempted(
              pod,
              GpuPart.shared("KAI", container, gpus, 0, size, 0).with(SharePolicy.BEST_EFFORT)));
    }
    int percent = percent(fraction.get());
    return Optional.of(
        preempted(
            pod,
            GpuPart.shared("KAI", container, gpus, percent, MemorySize.ZERO, percent)
                .with(SharePolicy.BURST_SHARE)));
  }

  private static int percent(String text) {
    BigDecimal percent = PodView.number(FRACTION, text).movePointRight(2);
    if (percent.compareTo(BigDecimal.ONE) < 0
        || percent.compareTo(BigDecimal.valueOf(99)) > 0
        || percent.stripTrailingZeros().scale() > 0) {
      throw new PodRefusedException(
          FRACTION
              + " is 0.01 to 0.99 of a GPU in steps of 0.01: asked "
              + text
              + "; for whole GPUs ask "
              + WHOLES);
    }
    return percent.intValueExact();
  }

  private static GpuPart preempted(PodView pod, GpuPart part) {
    return switch (pod.priorityClass()) {
      case "inference" -> part.with(PreemptionClass.ONLINE);
      case "build" -> part.with(PreemptionClass.NEARLINE);
      case "train", "build-preemptible" -> part.with(PreemptionClass.OFFLINE);
      default -> part;
    };
  }
}
