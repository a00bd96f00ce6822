package dev.vgpu.fleet.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The distinct states of a fleet's nodes. A state that no node has any more is kept for a while: it
 * often reappears, and policies then still know its cost.
 */
final class StateTable {
  private static final int MOST_STATES = 1 << 16;

  private final Map<NodeState, StateGroup> known = new HashMap<>();
  private final List<StateGroup> live = new ArrayList<>();
  private int[] liveIds = new int[16];
  private int era;

  List<StateGroup> live() {
    return live;
  }

  /** {@return the numbers of {@link #live}, in its order; the array may be longer} */
  int[] liveIds() {
    return liveIds;
  }

  int era() {
    return era;
  }

  StateGroup add(NodeState state, int node) {
    if (known.size() >= MOST_STATES + 2 * live.size()) {
      forget();
    }
    StateGroup group = known.computeIfAbsent(state, key -> new StateGroup(key, known.size()));
    if (group.size() == 0) {
      if (live.size() == liveIds.length) {
        liveIds = Arrays.copyOf(liveIds, 2 * liveIds.length);
      }
      liveIds[live.size()] = group.id();
      group.moveTo(live.size());
      live.add(group);
    }
    group.add(node);
    return group;
  }

  void remove(StateGroup group, int node) {
    group.remove(node);
    if (group.size() == 0) {
      StateGroup last = live.remove(live.size() - 1);
      if (last != group) {
        live.set(group.position(), last);
        liveIds[group.position()] = last.id();
        last.moveTo(group.position());
      }
    }
  }

  /** Starts a new era: drops states that no node has, and renumbers the others. */
  private void forget() {
    era++;
    known.clear();
    for (int i = 0; i < live.size(); i++) {
      live.get(i).renumber(i);
      liveIds[i] = i;
      known.put(live.get(i).state(), live.get(i));
    }
  }
}
