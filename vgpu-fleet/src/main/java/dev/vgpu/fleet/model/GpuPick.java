package dev.vgpu.fleet.model;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Chooses the GPUs of a node that match the chosen conditions; close ones where possible. */
final class GpuPick {
  private GpuPick() {}

  /**
   * {@return the numbers of the chosen GPUs}
   *
   * @param words the condition of each GPU
   * @param taken the conditions to be taken
   * @param gpuGroups the number of each GPU's clique
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
      // The smallest clique with room for all first; if there is none, the largest first.
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

  /** The rank differs between cliques, so that sorting keeps the GPUs of a clique together. */
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
