package dev.vgpu.fleet.model;

import java.util.Set;

/**
 * The part of a request that decides where it fits. Placement policies treat requests with equal
 * shapes alike. Immutable.
 *
 * @param gpus the number of GPUs on one node; 0 for none
 * @param sharePercent the percent of each GPU's time; 0 for whole GPUs, MIG instances and best
 *     effort
 * @param isWhole whether its GPUs are unshared
 * @param isOffline whether the share counts against the offline shares of a GPU
 * @param memoryMebibytes the memory on each GPU in MiB; a whole GPU includes all of its memory
 * @param memoryPercent the least memory on each GPU, in percent of the GPU's memory; 0 for none
 * @param cpuMillis processors, in thousandths
 * @param hostMebibytes host memory in MiB
 * @param models the allowed GPU models; empty for any
 * @param migProfile the kind of MIG instance; empty for none
 */
public record Shape(
    int gpus,
    int sharePercent,
    boolean isWhole,
    boolean isOffline,
    int memoryMebibytes,
    double memoryPercent,
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
   * {@return the memory needed on a GPU, in MiB}
   *
   * @param cardMebibytes the memory of that GPU, in MiB
   */
  public int mebibytesOn(int cardMebibytes) {
    int part = (int) (cardMebibytes * memoryPercent / WHOLE_PERCENT);
    return Math.max(memoryMebibytes, part);
  }

  /** {@return whether it needs a MIG instance} */
  public boolean isMig() {
    return !migProfile.isEmpty();
  }

  /** {@return whether it needs several GPUs of one node} */
  public boolean needsSeveral() {
    return gpus > 1;
  }

  /** {@return its GPU time, in percent of one GPU} */
  public int totalPercent() {
    return gpus * (isWhole ? WHOLE_PERCENT : sharePercent);
  }

  /**
   * {@return whether a GPU model is allowed}
   *
   * @param model the model's name
   */
  public boolean takes(String model) {
    return models.isEmpty() || models.contains(model);
  }
}
