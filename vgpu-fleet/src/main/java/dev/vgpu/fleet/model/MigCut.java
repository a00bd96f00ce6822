package dev.vgpu.fleet.model;

import java.util.List;

/**
 * A kind of MIG instance. Immutable.
 *
 * @param profile its name, for example {@code 3g.40gb}
 * @param slices the number of memory slices that it occupies
 * @param starts the memory slices at which it may begin
 */
public record MigCut(String profile, int slices, List<Integer> starts) {
  static final int MOST_SLICES = 12;

  /**
   * Copies the list.
   *
   * @throws IllegalArgumentException if an instance would lie outside the GPU
   */
  public MigCut {
    starts = List.copyOf(starts);
    for (int start : starts) {
      if (start < 0 || slices < 1 || start + slices > MOST_SLICES) {
        throw new IllegalArgumentException(
            "no such cut: profile=" + profile + " start=" + start + " slices=" + slices);
      }
    }
  }

  int mask(int start) {
    return ((1 << slices) - 1) << start;
  }
}
