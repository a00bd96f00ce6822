package dev.vgpu.nvml.mig;

import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * How much room for what may come each occupancy of a geometry leaves: the number of requests that
 * it can take still, expected under the best placement of each, where each kind of instance is as
 * likely to be asked for next as any other, and after each request with a chance of {@value
 * #ANOTHER} there is another one. Exact, by value iteration over all occupancies. Immutable.
 */
final class MigOptions {
  /** Tried in the benchmark: 0.5 to 0.95; this loses least, with and without departures. */
  static final double ANOTHER = 0.8;

  private static final double PRECISE = 1e-12;
  private static final Map<MigGeometry, MigOptions> KNOWN = new ConcurrentHashMap<>();

  private final MigGeometry geometry;
  private final double[] values;

  private MigOptions(MigGeometry geometry) {
    this.geometry = geometry;
    this.values = solve(geometry);
  }

  static MigOptions of(MigGeometry geometry) {
    return KNOWN.computeIfAbsent(geometry, MigOptions::new);
  }

  /** The requests that can still be taken, as expected. */
  double of(MigOccupancy taken) {
    return values[code(geometry, taken)];
  }

  private static int code(MigGeometry geometry, MigOccupancy taken) {
    int compute = Math.min(taken.computeSlices(), geometry.computeSlices());
    return (compute << geometry.memorySlices() | taken.memoryMask()) << 1 | (taken.media() ? 1 : 0);
  }

  private static double[] solve(MigGeometry geometry) {
    List<MigProfile> kinds =
        geometry.profiles().stream().filter(profile -> !profile.hasMedia()).toList();
    int masks = 1 << geometry.memorySlices();
    double[] values = new double[(geometry.computeSlices() + 1) * masks * 2];
    int[][][] next = new int[values.length][][];
    for (int compute = 0; compute <= geometry.computeSlices(); compute++) {
      for (int mask = 0; mask < masks; mask++) {
        for (int media = 0; media < 2; media++) {
          MigOccupancy taken = new MigOccupancy(mask, compute, media == 1);
          next[code(geometry, taken)] = steps(geometry, kinds, taken);
        }
      }
    }
    double change = 1;
    while (change > PRECISE) {
      change = improve(values, next);
    }
    return values;
  }

  private static int[][] steps(MigGeometry geometry, List<MigProfile> kinds, MigOccupancy taken) {
    return kinds.stream()
        .map(
            kind ->
                geometry.legalStarts(taken, kind).stream()
                    .mapToInt(start -> code(geometry, taken.with(kind, start)))
                    .distinct()
                    .toArray())
        .toArray(int[][]::new);
  }

  /** One round, the fullest first: what they lead to is never emptier. */
  private static double improve(double[] values, int[][][] next) {
    double change = 0;
    for (int code = values.length - 1; code >= 0; code--) {
      double here = values[code];
      double sum = 0;
      for (int[] places : next[code]) {
        sum +=
            places.length == 0
                ? ANOTHER * here
                : 1 + ANOTHER * Arrays.stream(places).mapToDouble(to -> values[to]).max().orElse(0);
      }
      values[code] = next[code].length == 0 ? 0 : sum / next[code].length;
      change = Math.max(change, Math.abs(values[code] - here));
    }
    return change;
  }
}
