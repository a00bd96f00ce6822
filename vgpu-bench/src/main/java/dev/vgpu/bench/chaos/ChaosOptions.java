package dev.vgpu.bench.chaos;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;

/**
 * The options of a run. Immutable.
 *
 * @param seed the seed of the random steps
 * @param seconds how long to run
 * @param steps how many steps at most
 * @param leastSteps a run of fewer steps shows too little, unless {@code steps} is less
 * @param runs how many runs, one after the other
 * @param json whether to print a JSON object for each run
 */
record ChaosOptions(long seed, double seconds, int steps, int leastSteps, int runs, boolean json) {
  private static final double MINUTES = 5;
  private static final int LEAST_STEPS = 10;
  private static final long LARGEST_RANDOM_SEED = 1_000_000;

  /**
   * Parses a command line.
   *
   * @throws IllegalArgumentException if it is not valid; the message says why
   */
  static ChaosOptions parse(List<String> arguments) {
    long seed = random(new Random());
    int runs = 1;
    double minutes = MINUTES;
    int steps = Integer.MAX_VALUE;
    int leastSteps = LEAST_STEPS;
    boolean json = false;
    Iterator<String> words = new ArrayList<>(arguments).iterator();
    while (words.hasNext()) {
      String word = words.next();
      switch (word) {
        case "--json" -> json = true;
        case "--seed" -> seed = Long.parseLong(value(word, words));
        case "--minutes" -> minutes = Double.parseDouble(value(word, words));
        case "--steps" -> steps = Integer.parseInt(value(word, words));
        case "--least-steps" -> leastSteps = Integer.parseInt(value(word, words));
        case "--runs" -> runs = Integer.parseInt(value(word, words));
        default -> throw new IllegalArgumentException("what is '" + word + "'?");
      }
    }
    if (!(minutes > 0) || steps < 1 || runs < 1) {
      throw new IllegalArgumentException("--minutes, --steps and --runs must be more than 0");
    }
    return new ChaosOptions(seed, minutes * 60, steps, leastSteps, runs, json);
  }

  private static long random(Random random) {
    return 1 + random.nextLong(LARGEST_RANDOM_SEED);
  }

  /** {@return the options of each run: the first has the seed, the others seeds drawn from it} */
  List<ChaosOptions> each() {
    List<ChaosOptions> each = new ArrayList<>(List.of(this));
    Random random = new Random(seed);
    while (each.size() < runs) {
      each.add(new ChaosOptions(random(random), seconds, steps, leastSteps, runs, json));
    }
    return each;
  }

  /** {@return whether a run that held has made too few steps to show anything} */
  boolean isTooShort(int made) {
    return made < Math.min(leastSteps, steps);
  }

  static String value(String word, Iterator<String> words) {
    if (!words.hasNext()) {
      throw new IllegalArgumentException(word + " needs a value");
    }
    return words.next();
  }
}
