package dev.vgpu.nvml;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * All that holds NVML open in this JVM. A driver that was reloaded answers this process only after
 * each holder has ended NVML. Safe for use by several threads.
 */
public final class OpenNvml {
  private static final Set<Runnable> HOLDERS = new HashSet<>();

  private OpenNvml() {}

  /**
   * Adds a holder.
   *
   * @param end ends NVML there; the holder begins anew when it is used next
   */
  public static void add(Runnable end) {
    synchronized (HOLDERS) {
      HOLDERS.add(end);
    }
  }

  /**
   * Removes a holder.
   *
   * @param end the same as was added
   */
  public static void remove(Runnable end) {
    synchronized (HOLDERS) {
      HOLDERS.remove(end);
    }
  }

  /** Ends NVML at every holder. The caller must hold no lock of a holder. */
  static void endAll() {
    List<Runnable> all;
    synchronized (HOLDERS) {
      all = List.copyOf(HOLDERS);
    }
    all.forEach(Runnable::run);
  }
}
