package dev.vgpu.nvml.mig.plan;

import static java.util.Objects.requireNonNull;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How much room a partitioned GPU leaves for future requests: the expected number of the next
 * {@value #REQUESTS} requests that it can take, if each is placed best. Larger profiles are
 * requested less often, and an instance stays while {@value #STAYS} other requests arrive. Exact,
 * by value iteration over every set of placements; a request that fits is never refused. Immutable.
 *
 * <p>The future load is unknown, so these assumptions are a choice. {@code bench mig} compares the
 * result with the best policy for each of several loads. The assumptions tried were: the smallest
 * profile 1 to 8 times as likely as the largest, and a stay of 3 to 1,000 requests. The chosen ones
 * have the smallest worst-case loss, and are nowhere worse than first-fit or best-fit.
 */
final class MigOptions {
  static final int REQUESTS = 20;

  static final int STAYS = 4;

  private static final double ENDS = 1.0 / STAYS;
  private static final double OVER = 1.0 / (REQUESTS - 1);
  private static final double PRECISE = 1e-11;

  /** Real GPUs have at most 723 sets; a broken driver's geometry is not searched to its end. */
  private static final int MOST_SETS = 20_000;

  private static final int MOST_PLACES = 62;
  private static final Map<Key, MigOptions> KNOWN = new ConcurrentHashMap<>();

  /** A geometry, with the slices that instances of no known profile take. */
  private record Key(MigGeometry geometry, MigOccupancy strange) {}

  /** A profile at a start. */
  private record Place(int kind, int start, int mask, int computeSlices, int memorySlices) {}

  private final Key key;
  private final List<Place> places;
  private final double[] weights;
  private final Map<Long, Integer> numbers = new HashMap<>();
  private final double[] values;

  private MigOptions(Key key) {
    this.key = key;
    List<MigProfile> shapes = shapes(key.geometry());
    this.weights = weights(shapes);
    this.places = places(shapes);
    List<Long> sets = explore();
    this.values = new double[sets.size()];
    solve(sets);
  }

  /** {@return the expected number of requests that a GPU can take} */
  static double of(MigGpu gpu) {
    return of(gpu.geometry(), gpu.instances());
  }

  private static double of(MigGeometry geometry, List<MigInstance> instances) {
    List<Place> all = places(shapes(geometry));
    List<MigInstance> strange = new ArrayList<>();
    long set = 0;
    for (MigInstance each : instances) {
      int place = place(all, each);
      if (place < 0) {
        strange.add(each);
      } else {
        set |= 1L << place;
      }
    }
    MigOccupancy base = MigGpu.occupancy(geometry, strange);
    Key key = new Key(geometry, new MigOccupancy(base.memoryMask(), base.computeSlices(), false));
    MigOptions options = KNOWN.computeIfAbsent(key, MigOptions::new);
    return Optional.ofNullable(options.numbers.get(set)).map(at -> options.values[at]).orElse(0.0);
  }

  /** {@return the same with one more instance} */
  static double with(MigGpu gpu, MigProfile profile, int start) {
    List<MigInstance> instances = new ArrayList<>(gpu.instances());
    instances.add(
        new MigInstance(
            -1, profile.id(), start, profile.memorySlices(), profile.computeSlices(), "", false));
    return of(gpu.geometry(), instances);
  }

  /** {@return the profiles that differ in the slices they take; media engines are not slices} */
  private static List<MigProfile> shapes(MigGeometry geometry) {
    List<MigProfile> shapes = new ArrayList<>();
    for (MigProfile profile : geometry.profiles()) {
      if (!profile.hasMedia()
          && shapes.stream()
              .noneMatch(
                  other ->
                      other.computeSlices() == profile.computeSlices()
                          && other.memorySlices() == profile.memorySlices())) {
        shapes.add(profile);
      }
    }
    return shapes;
  }

  /** {@return the probability of each profile, proportional to 1 / sqrt(memory slices)} */
  private static double[] weights(List<MigProfile> shapes) {
    double[] weights =
        shapes.stream().mapToDouble(shape -> 1 / Math.sqrt(shape.memorySlices())).toArray();
    double all = Arrays.stream(weights).sum();
    return Arrays.stream(weights).map(weight -> weight / all).toArray();
  }

  private static List<Place> places(List<MigProfile> shapes) {
    List<Place> places = new ArrayList<>();
    for (int kind = 0; kind < shapes.size(); kind++) {
      MigProfile shape = shapes.get(kind);
      for (int start : shape.starts()) {
        places.add(
            new Place(kind, start, shape.mask(start), shape.computeSlices(), shape.memorySlices()));
      }
    }
    return places.size() > MOST_PLACES ? places.subList(0, MOST_PLACES) : places;
  }

  /** {@return the place of an instance; -1 if it is none of these} */
  private static int place(List<Place> places, MigInstance instance) {
    for (int i = 0; i < places.size(); i++) {
      Place place = places.get(i);
      if (place.start() == instance.start()
          && place.computeSlices() == instance.computeSlices()
          && place.memorySlices() == instance.memorySlices()) {
        return i;
      }
    }
    return -1;
  }

  // ---- search

  private boolean fits(long set, Place place) {
    int compute = key.strange().computeSlices() + place.computeSlices();
    int mask = key.strange().memoryMask();
    for (int i = 0; i < places.size(); i++) {
      if ((set >> i & 1) != 0) {
        compute += places.get(i).computeSlices();
        mask |= places.get(i).mask();
      }
    }
    return (mask & place.mask()) == 0 && compute <= key.geometry().computeSlices();
  }

  /** {@return all legal sets of places, each after its subsets} */
  private List<Long> explore() {
    List<Long> sets = new ArrayList<>(List.of(0L));
    numbers.put(0L, 0);
    for (int i = 0; i < sets.size() && sets.size() < MOST_SETS; i++) {
      for (int place = 0; place < places.size(); place++) {
        long set = sets.get(i) | 1L << place;
        if (fits(sets.get(i), places.get(place)) && numbers.putIfAbsent(set, sets.size()) == null) {
          sets.add(set);
        }
      }
    }
    return sets;
  }

  private void solve(List<Long> sets) {
    int[][][] next = new int[values.length][weights.length][];
    int[][] less = new int[values.length][];
    for (int i = 0; i < values.length; i++) {
      long set = sets.get(i);
      List<List<Integer>> more = new ArrayList<>();
      for (int kind = 0; kind < weights.length; kind++) {
        more.add(new ArrayList<>());
      }
      List<Integer> fewer = new ArrayList<>();
      for (int place = 0; place < places.size(); place++) {
        long other = set ^ 1L << place;
        if ((set >> place & 1) != 0) {
          fewer.add(requireNonNull(numbers.get(other)));
        } else if (numbers.containsKey(other)) {
          more.get(places.get(place).kind()).add(requireNonNull(numbers.get(other)));
        }
      }
      for (int kind = 0; kind < weights.length; kind++) {
        next[i][kind] = more.get(kind).stream().mapToInt(Integer::intValue).toArray();
      }
      less[i] = fewer.stream().mapToInt(Integer::intValue).toArray();
    }
    double change = 1;
    while (change > PRECISE) {
      change = improve(next, less);
    }
  }

  /** One iteration over all sets, the largest first. */
  private double improve(int[][][] next, int[][] less) {
    double change = 0;
    for (int i = values.length - 1; i >= 0; i--) {
      double sum = 0;
      for (int kind = 0; kind < weights.length; kind++) {
        double best = next[i][kind].length == 0 ? values[i] : 0;
        for (int set : next[i][kind]) {
          best = Math.max(best, 1 + values[set]);
        }
        sum += weights[kind] * best;
      }
      for (int set : less[i]) {
        sum += ENDS * values[set];
      }
      double value = sum / (1 + ENDS * less[i].length + OVER);
      change = Math.max(change, Math.abs(value - values[i]));
      values[i] = value;
    }
    return change;
  }
}
