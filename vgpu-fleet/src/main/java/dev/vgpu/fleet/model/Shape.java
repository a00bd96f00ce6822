package dev.vgpu.fleet.model;

import java.util.Set;

/**
 * The part of a request that decides where it fits. Immutable; requests with equal shapes are alike
 * to every placement policy.
 *
 * @param gpus how many GPUs on one node; 0: none
 * @param sharePercent percent of each GPU's time; 0 for whole GPUs, MIG instances and best effort
 * @param isWhole whether each GPU is held alone
 * @param isOffline whether the share counts against the offline shares of a GPU
 * @param memoryMebibytes GPU memory on each GPU; a whole GPU has all of its own
 * @param memoryPercent the least part of each GPU's memory, in percent of the card; 0: none
 * @param cpuMillis thousandths of a processor
 * @param hostMebibytes host memory
 * @param models the GPU models that will do; empty: any
 * @param migProfile the kind of MIG instance; empty: none
 */
public record Shape(
    int gpus,
    int sharePercent,
    boolean isWhole,
    boolean isOffline,
    int memoryMebibytes,
    int memoryPercent,
    int cpuMillis,
    int hostMebibytes,
    Set<String> models,
    String migProfile) {
  private static final int WHOLE_PERCENT = 100;

  /** Copies the set. */
  public Shape {
    models = Set.copyOf(models);
  }

  /**
   * {@return the memory that is asked on such a GPU, in MiB}
   *
   * @param cardMebibytes the memory of the GPU
   */
  public int mebibytesOn(int cardMebibytes) {
    int part = (int) ((long) cardMebibytes * memoryPercent / WHOLE_PERCENT);
    return Math.max(memoryMebibytes, part);
  }

  /** {@return whether an instance of MIG is asked for} */
  public boolean isMig() {
    return !migProfile.isEmpty();
  }

  /** {@return whether it needs several GPUs of one node} */
  public boolean needsSeveral() {
    return gpus > 1;
  }

  /** {@return GPU time, in percent of one GPU} */
  public int totalPercent() {
    return gpus * (isWhole ? WHOLE_PERCENT : sharePercent);
  }

  /**
   * {@return whether a GPU model will do}
   *
   * @param model the model's name
   */
  public boolean takes(String model) {
    return models.isEmpty() || models.contains(model);
  }
}
