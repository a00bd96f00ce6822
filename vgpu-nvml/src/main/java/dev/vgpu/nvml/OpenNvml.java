package dev.vgpu.nvml;

import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The users that hold NVML open in this JVM. A reloaded driver answers this process only after
 * every holder has shut NVML down. Safe for use by several threads.
 */
public final class OpenNvml {
  private static final Set<Runnable> HOLDERS = new HashSet<>();

  private OpenNvml() {}

  /**
   * Adds a holder.
   *
   * @param end shuts NVML down in the holder, which opens it again on its next use
   */
  public static void add(Runnable end) {
    synchronized (HOLDERS) {
      HOLDERS.add(end);
    }
  }

  /**
   * Removes a holder.
   *
   * @param end the same object that was added
   */
  public static void remove(Runnable end) {
    synchronized (HOLDERS) {
      HOLDERS.remove(end);
    }
  }

  /** Shuts NVML down in every holder. The caller must not hold a holder's lock. */
  static void endAll() {
    List<Runnable> all;
    synchronized (HOLDERS) {
      all = List.copyOf(HOLDERS);
    }
    all.forEach(Runnable::run);
  }
}
