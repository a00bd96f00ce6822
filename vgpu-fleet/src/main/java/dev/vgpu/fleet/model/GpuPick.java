package dev.vgpu.fleet.model;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Chooses which GPUs of a node stand for the chosen conditions: close ones, where there are. */
final class GpuPick {
  private GpuPick() {}

  /**
   * {@return the GPUs' numbers}
   *
   * @param words the condition of each GPU
   * @param taken the conditions that are taken
   * @param gpuGroups for each GPU the number of its clique
   */
  static List<Integer> pick(long[] words, long[] taken, List<Integer> gpuGroups) {
    Map<Integer, Integer> room = new HashMap<>();
    for (int gpu = 0; gpu < words.length; gpu++) {
      if (contains(taken, words[gpu])) {
        room.merge(gpuGroups.get(gpu), 1, Integer::sum);
      }
    }
    List<Integer> order = new ArrayList<>();
    for (int gpu = 0; gpu < words.length; gpu++) {
      order.add(gpu);
    }
    if (room.size() > 1) {
      // The smallest clique that has room for all; where none has, the largest first.
      order.sort(
          (a, b) ->
              Integer.compare(
                  rank(room, gpuGroups.get(a), taken.length),
                  rank(room, gpuGroups.get(b), taken.length)));
    }
    List<Integer> picked = new ArrayList<>();
    for (long word : taken) {
      for (int gpu : order) {
        if (words[gpu] == word && !picked.contains(gpu)) {
          picked.add(gpu);
          break;
        }
      }
    }
    Collections.sort(picked);
    return picked;
  }

  /** Stable sorting keeps GPUs of one clique together only if no two cliques rank alike. */
  private static int rank(Map<Integer, Integer> room, int group, int needed) {
    int size = room.getOrDefault(group, 0);
    int fit = size >= needed ? size : (1 << 20) - size;
    return fit * 128 + group % 128;
  }

  private static boolean contains(long[] taken, long word) {
    for (long one : taken) {
      if (one == word) {
        return true;
      }
    }
    return false;
  }
}
