package dev.vgpu.bench;

import static java.util.Objects.requireNonNull;

import dev.vgpu.nvml.mig.MigGeometry;
import dev.vgpu.nvml.mig.MigProfile;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What can be done at best with one GPU, by search over every set of placements. It takes from the
 * planner's classes only what a profile is; the rules are written anew.
 */
final class ExhaustiveMig {
  private static final double PRECISE = 1e-12;
  private static final double SAME = 1e-9;

  /** A kind at a place. */
  private record Place(MigProfile kind, int start) {}

  private final MigGeometry geometry;
  private final double another;
  private final List<MigProfile> kinds;
  private final List<Place> places = new ArrayList<>();

  /** By the set of places that are taken, as bits: the sets that each kind leads to. */
  private final Map<Integer, List<List<Integer>>> next = new HashMap<>();

  private final Map<Integer, Double> values = new HashMap<>();

  ExhaustiveMig(MigGeometry geometry, List<MigProfile> kinds, double another) {
    this.geometry = geometry;
    this.kinds = kinds;
    this.another = another;
    for (MigProfile kind : kinds) {
      kind.starts().forEach(start -> places.add(new Place(kind, start)));
    }
    explore();
    solve();
  }

  private void explore() {
    Deque<Integer> open = new ArrayDeque<>(List.of(0));
    next.put(0, List.of());
    while (!open.isEmpty()) {
      int taken = open.pop();
      List<List<Integer>> byKind = new ArrayList<>();
      for (MigProfile kind : kinds) {
        List<Integer> sets = new ArrayList<>();
        for (int i = 0; i < places.size(); i++) {
          if (places.get(i).kind().equals(kind) && fits(taken, places.get(i))) {
            int set = taken | 1 << i;
            sets.add(set);
            if (next.putIfAbsent(set, List.of()) == null) {
              open.add(set);
            }
          }
        }
        byKind.add(sets);
      }
      next.put(taken, byKind);
    }
  }

  private boolean fits(int taken, Place place) {
    int compute = place.kind().computeSlices();
    int same = 0;
    for (int i = 0; i < places.size(); i++) {
      if ((taken >> i & 1) != 0) {
        Place other = places.get(i);
        compute += other.kind().computeSlices();
        same += other.kind().equals(place.kind()) ? 1 : 0;
        boolean apart =
            other.start() + other.kind().memorySlices() <= place.start()
                || place.start() + place.kind().memorySlices() <= other.start();
        if (!apart) {
          return false;
        }
      }
    }
    return compute <= geometry.computeSlices() && same < place.kind().most();
  }

  private double value(int set) {
    return requireNonNull(values.get(set));
  }

  private List<List<Integer>> sets(int taken) {
    return requireNonNull(next.get(taken));
  }

  /** The requests that are accepted from each set on, as expected, if each is placed best. */
  private void solve() {
    next.keySet().forEach(set -> values.put(set, 0.0));
    double change = 1;
    while (change > PRECISE) {
      change = 0;
      for (Map.Entry<Integer, List<List<Integer>>> each : next.entrySet()) {
        double here = value(each.getKey());
        double sum = 0;
        for (List<Integer> sets : each.getValue()) {
          double best = 0;
          for (int set : sets) {
            best = Math.max(best, 1 + another * value(set));
          }
          sum += sets.isEmpty() ? another * here : best;
        }
        double value = sum / kinds.size();
        change = Math.max(change, Math.abs(value - here));
        values.put(each.getKey(), value);
      }
    }
  }

  /** How many of a sequence are accepted by who knows what may come, and how likely it is. */
  int accepted(List<MigProfile> sequence) {
    int taken = 0;
    int accepted = 0;
    for (MigProfile kind : sequence) {
      int best = -1;
      for (int set : sets(taken).get(kinds.indexOf(kind))) {
        // Of places that are worth the same the last, as the planner does.
        if (best < 0 || value(set) >= value(best) - SAME) {
          best = set;
        }
      }
      if (best >= 0) {
        taken = best;
        accepted++;
      }
    }
    return accepted;
  }

  /** How many by who knows the sequence, and refuses nothing that fits. */
  int clairvoyant(List<MigProfile> sequence) {
    Map<Integer, Integer> reached = new LinkedHashMap<>();
    reached.put(0, 0);
    for (MigProfile kind : sequence) {
      Map<Integer, Integer> then = new LinkedHashMap<>();
      reached.forEach(
          (taken, accepted) -> {
            List<Integer> sets = sets(taken).get(kinds.indexOf(kind));
            if (sets.isEmpty()) {
              then.merge(taken, accepted, Math::max);
            }
            sets.forEach(set -> then.merge(set, accepted + 1, Math::max));
          });
      reached = then;
    }
    return reached.values().stream().max(Integer::compare).orElse(0);
  }
}
