package dev.vgpu.bench.chaos;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;

/**
 * The options of a soak test. Immutable.
 *
 * @param seconds how long to run
 * @param tenants how many tenants at once
 * @param out where the results go
 * @param append whether to continue the results that are there
 * @param seed the seed of the disturbances
 * @param json whether the report is printed as JSON
 */
record SoakOptions(double seconds, int tenants, Path out, boolean append, long seed, boolean json) {
  private static final int TENANTS = 64;
  private static final int MOST_TENANTS = 512;
  private static final long LARGEST_RANDOM_SEED = 1_000_000;

  /**
   * Parses a command line.
   *
   * @throws IllegalArgumentException if it is not valid; the message says why
   */
  static SoakOptions parse(List<String> arguments) {
    double hours = 8;
    int tenants = TENANTS;
    Path out = Path.of("vgpu-soak");
    boolean append = false;
    boolean json = false;
    long seed = 1 + new Random().nextLong(LARGEST_RANDOM_SEED);
    Iterator<String> words = new ArrayList<>(arguments).iterator();
    while (words.hasNext()) {
      String word = words.next();
      switch (word) {
        case "--json" -> json = true;
        case "--append" -> append = true;
        case "--hours" -> hours = Double.parseDouble(ChaosOptions.value(word, words));
        case "--tenants" -> tenants = Integer.parseInt(ChaosOptions.value(word, words));
        case "--seed" -> seed = Long.parseLong(ChaosOptions.value(word, words));
        case "--out" -> out = Path.of(ChaosOptions.value(word, words));
        default -> throw new IllegalArgumentException("what is '" + word + "'?");
      }
    }
    if (!(hours > 0) || tenants < 1 || tenants > MOST_TENANTS) {
      throw new IllegalArgumentException(
          "--hours must be more than 0, --tenants from 1 to " + MOST_TENANTS);
    }
    return new SoakOptions(hours * 3_600, tenants, out, append, seed, json);
  }

  /** The interval of the samples: long enough that measuring does not distort the figures. */
  double sampleSeconds() {
    return Math.max(2, Math.min(30, seconds / 120));
  }

  /** How often the seat's holder is killed: seldom, so that each holder is observed for long. */
  double seatSeconds() {
    return Math.max(10, Math.min(1_800, seconds / 4));
  }
}
