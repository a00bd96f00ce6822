package dev.vgpu.core.reclaim;

import dev.vgpu.GpuSettings;
import dev.vgpu.request.MemorySize;

/**
 * The settings of a {@link ReclaimPlanner}. Immutable.
 *
 * @param usableBytes the memory of the GPU that tenants may have
 * @param lowBytes reclaim starts when less than this is free; 0: never
 * @param highBytes reclaim stops when this much is free; at least {@code lowBytes}
 * @param forecastNs how far ahead growth is extrapolated
 * @param askNs how long owners may take to answer; 0: they are not asked
 * @param suspendNs how long a suspension may take; 0: tenants are not suspended
 * @param endNs how long programs may take to terminate; 0: they are killed at once
 * @param holdBackNs how long the high watermark must have been free before tenants may come back
 */
public record ReclaimSettings(
    long usableBytes,
    long lowBytes,
    long highBytes,
    long forecastNs,
    long askNs,
    long suspendNs,
    long endNs,
    long holdBackNs) {
  private static final int ALL_PERCENT = 100;

  /** Checks that the watermarks are in order. */
  public ReclaimSettings {
    if (lowBytes < 0 || highBytes < lowBytes || usableBytes < highBytes) {
      throw new IllegalArgumentException(
          "watermarks are not in order: lowBytes="
              + lowBytes
              + " highBytes="
              + highBytes
              + " usableBytes="
              + usableBytes);
    }
  }

  /**
   * {@return the reclaim settings of a GPU}
   *
   * @param settings the GPU's settings
   * @param usable the memory that tenants may have
   */
  public static ReclaimSettings from(GpuSettings settings, MemorySize usable) {
    return new ReclaimSettings(
        usable.bytes(),
        part(usable, settings.memoryLowWatermarkPercent()),
        part(usable, settings.memoryHighWatermarkPercent()),
        settings.memoryForecast().toNanos(),
        settings.reclaimAskTimeout().toNanos(),
        settings.reclaimSuspendTimeout().toNanos(),
        settings.reclaimEndTimeout().toNanos(),
        settings.reclaimHoldBack().toNanos());
  }

  private static long part(MemorySize usable, int percent) {
    return usable.bytes() / ALL_PERCENT * percent;
  }

  /** {@return whether memory is reclaimed at all} */
  public boolean isOn() {
    return lowBytes > 0;
  }
}
