package dev.vgpu.core.reclaim;

import dev.vgpu.GpuSettings;
import dev.vgpu.MemorySize;

/**
 * What a {@link ReclaimPlanner} goes by. Immutable.
 *
 * @param usableBytes the memory of the GPU that tenants may have
 * @param lowBytes below this, reclaim begins
 * @param highBytes with this, it ends; {@code lowBytes} or more
 * @param forecastNs how far ahead growth is looked at
 * @param askNs how long owners may take; 0: they are not asked
 * @param suspendNs how long a suspension may take; 0: nobody is suspended
 * @param endNs how long programs may take to end; 0: they are killed at once
 * @param holdBackNs how long the high watermark must have been free until tenants may come back
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

  /** Checks what does not fit together. */
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
   * {@return the settings that a GPU's ask for}
   *
   * @param settings the GPU's
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
