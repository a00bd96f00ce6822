package dev.vgpu.bench.placement;

import static java.util.Objects.requireNonNull;

import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.nvml.mig.plan.MigProfile;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The optimum for one GPU, by search over every set of placements. It takes only the profiles from
 * the planner's classes; the rules are implemented independently.
 *
 * <p>Time is counted in arrivals. Requests arrive at rate 1, each kind with its weight; each
 * instance ends at rate {@code ends}, and the sequence itself at rate {@code over}.
 */
final class ExhaustiveMig {
  private static final double PRECISE = 1e-11;
  private static final double SAME = 1e-9;

  /** Bits of a request's index in a clairvoyant's state. */
  private static final int NUMBER_BITS = 6;

  /** Stands for the index of any request whose instance stays until the end of the sequence. */
  private static final int STAYS = (1 << NUMBER_BITS) - 1;

  /** The longest sequence that the clairvoyant can search. */
  static final int LONGEST = STAYS;

  /** A request: the kind, the time of its arrival, and the end of its instance, in arrivals. */
  record Request(int kind, double at, double until) {}

  /** A placement of a kind. */
  private record Place(int kind, int start, int mask, int compute) {}

  private final int computeSlices;
  private final int[] most;
  private final double[] weights;
  private final double ends;
  private final double over;
  private final List<Place> places = new ArrayList<>();

  /** Every possible set of placements, as bits, in the order of their size. */
  private final int[] sets;

  private final Map<Integer, Integer> numbers = new HashMap<>();

  /** By a set's index and a kind: the indexes of the sets with one more instance of that kind. */
  private final int[][][] next;

  /** By a set's index: the indexes of the sets with one instance less. */
  private final int[][] less;

  private final double[] values;

  ExhaustiveMig(
      MigGeometry geometry, List<MigProfile> kinds, double[] weights, double ends, double over) {
    this.computeSlices = geometry.computeSlices();
    this.weights = weights;
    this.ends = ends;
    this.over = over;
    this.most = kinds.stream().mapToInt(MigProfile::most).toArray();
    for (int kind = 0; kind < kinds.size(); kind++) {
      MigProfile profile = kinds.get(kind);
      for (int start : profile.starts()) {
        int mask = ((1 << profile.memorySlices()) - 1) << start;
        places.add(new Place(kind, start, mask, profile.computeSlices()));
      }
    }
    sets = explore();
    for (int i = 0; i < sets.length; i++) {
      numbers.put(sets[i], i);
    }
    next = new int[sets.length][kinds.size()][];
    less = new int[sets.length][];
    for (int i = 0; i < sets.length; i++) {
      lead(i);
    }
    values = new double[sets.length];
    solve();
  }

  private int[] explore() {
    List<Integer> found = new ArrayList<>(List.of(0));
    Map<Integer, Boolean> known = new HashMap<>(Map.of(0, true));
    for (int i = 0; i < found.size(); i++) {
      for (int place = 0; place < places.size(); place++) {
        int set = found.get(i) | 1 << place;
        if (fits(found.get(i), places.get(place)) && known.putIfAbsent(set, true) == null) {
          found.add(set);
        }
      }
    }
    return found.stream().mapToInt(Integer::intValue).toArray();
  }

  private boolean fits(int taken, Place place) {
    int compute = place.compute();
    int same = 0;
    for (int i = 0; i < places.size(); i++) {
      if ((taken >> i & 1) != 0) {
        Place other = places.get(i);
        compute += other.compute();
        same += other.kind() == place.kind() ? 1 : 0;
        if ((other.mask() & place.mask()) != 0) {
          return false;
        }
      }
    }
    return compute <= computeSlices && same < most[place.kind()];
  }

  private int number(int set) {
    return requireNonNull(numbers.get(set));
  }

  private void lead(int number) {
    int taken = sets[number];
    for (int kind = 0; kind < next[number].length; kind++) {
      List<Integer> found = new ArrayList<>();
      for (int i = 0; i < places.size(); i++) {
        if (places.get(i).kind() == kind && fits(taken, places.get(i))) {
          found.add(number(taken | 1 << i));
        }
      }
      next[number][kind] = found.stream().mapToInt(Integer::intValue).toArray();
    }
    List<Integer> smaller = new ArrayList<>();
    for (int i = 0; i < places.size(); i++) {
      if ((taken >> i & 1) != 0) {
        smaller.add(number(taken & ~(1 << i)));
      }
    }
    less[number] = smaller.stream().mapToInt(Integer::intValue).toArray();
  }

  /** Computes the expected number of accepted requests from each set, with optimal placement. */
  private void solve() {
    double change = 1;
    while (change > PRECISE) {
      change = 0;
      for (int i = sets.length - 1; i >= 0; i--) {
        double sum = 0;
        for (int kind = 0; kind < weights.length; kind++) {
          int to = best(next[i][kind]);
          sum += weights[kind] * (to < 0 ? values[i] : 1 + values[to]);
        }
        for (int smaller : less[i]) {
          sum += ends * values[smaller];
        }
        double value = sum / (1 + ends * less[i].length + over);
        change = Math.max(change, Math.abs(value - values[i]));
        values[i] = value;
      }
    }
  }

  /** The most valuable set, or of equal ones the last, as the planner chooses; -1 if none. */
  private int best(int[] of) {
    int best = -1;
    for (int each : of) {
      if (best < 0 || values[each] >= values[best] - SAME) {
        best = each;
      }
    }
    return best;
  }

  int states() {
    return sets.length;
  }

  private int added(int from, int to) {
    return Integer.numberOfTrailingZeros(sets[to] & ~sets[from]);
  }

  /** How many requests of a sequence a policy accepts that knows only their probabilities. */
  int accepted(List<Request> sequence) {
    int taken = 0;
    int accepted = 0;
    double[] until = new double[places.size()];
    for (Request request : sequence) {
      for (int i = 0; i < until.length; i++) {
        if (until[i] > 0 && until[i] <= request.at()) {
          until[i] = 0;
          taken = number(sets[taken] & ~(1 << i));
        }
      }
      int best = best(next[taken][request.kind()]);
      if (best >= 0) {
        until[added(taken, best)] = request.until();
        taken = best;
        accepted++;
      }
    }
    return accepted;
  }

  /**
   * How many requests are accepted by a policy that knows the sequence and refuses nothing that
   * fits. A state is a set of placements, and for each of them the request that holds it.
   */
  int clairvoyant(List<Request> sequence) {
    if (sequence.size() > LONGEST) {
      throw new IllegalArgumentException("too long: " + sequence.size());
    }
    Map<Long, Integer> reached = new HashMap<>();
    reached.put(0L, 0);
    double last = sequence.get(sequence.size() - 1).at();
    for (int request = 0; request < sequence.size(); request++) {
      Map<Long, Integer> then = new HashMap<>();
      int kind = sequence.get(request).kind();
      for (Map.Entry<Long, Integer> each : reached.entrySet()) {
        int[] holders = holders(each.getKey());
        int mask = leave(sequence, holders, sequence.get(request).at());
        int taken = number(mask);
        int[] to = next[taken][kind];
        if (to.length == 0) {
          then.merge(state(mask, holders), each.getValue(), Math::max);
        }
        for (int set : to) {
          int place = added(taken, set);
          holders[place] = sequence.get(request).until() > last ? STAYS : request;
          then.merge(state(sets[set], holders), each.getValue() + 1, Math::max);
          holders[place] = -1;
        }
      }
      reached = then;
    }
    return reached.values().stream().max(Integer::compare).orElse(0);
  }

  /** Ends the instances that are over by then; returns the set that is left. */
  private static int leave(List<Request> sequence, int[] holders, double now) {
    int mask = 0;
    for (int i = 0; i < holders.length; i++) {
      if (holders[i] >= 0 && holders[i] != STAYS && sequence.get(holders[i]).until() <= now) {
        holders[i] = -1;
      }
      mask |= holders[i] >= 0 ? 1 << i : 0;
    }
    return mask;
  }

  private long state(int mask, int[] holders) {
    long state = 0;
    for (int i = places.size() - 1; i >= 0; i--) {
      if ((mask >> i & 1) != 0) {
        state = state << NUMBER_BITS | holders[i];
      }
    }
    return state << places.size() | mask;
  }

  private int[] holders(long state) {
    int[] holders = new int[places.size()];
    Arrays.fill(holders, -1);
    long numbersLeft = state >>> places.size();
    for (int i = 0; i < holders.length; i++) {
      if ((state >> i & 1) != 0) {
        holders[i] = (int) (numbersLeft & STAYS);
        numbersLeft >>>= NUMBER_BITS;
      }
    }
    return holders;
  }
}
