package dev.vgpu.simulation;

import java.util.SplittableRandom;

/**
 * Random numbers that are the same on every machine and JDK for the same seed and name. Not
 * thread-safe.
 */
final class Draws {
  private static final double TWO_TO_53 = 9007199254740992.0;

  private final SplittableRandom random;

  /**
   * Creates a series.
   *
   * @param seed the simulation's seed
   * @param name whose draws these are; the draws of other names do not affect them
   */
  Draws(long seed, String name) {
    long hash = 0xcbf29ce484222325L;
    for (int i = 0; i < name.length(); i++) {
      hash = (hash ^ name.charAt(i)) * 0x100000001b3L;
    }
    this.random = new SplittableRandom(seed * 0x9e3779b97f4a7c15L ^ hash);
  }

  /** {@return a number above 0 and below 1} */
  double uniform() {
    return ((random.nextLong() >>> 11) + 0.5) / TWO_TO_53;
  }

  /** {@return a number between two bounds, both inclusive} */
  long between(long from, long to) {
    return from + (long) (uniform() * (to - from + 1));
  }

  /** {@return an exponentially distributed number with mean 1} */
  double exponential() {
    return -StrictMath.log(uniform());
  }

  /** {@return a normally distributed number with mean 0 and standard deviation 1} */
  double normal() {
    return StrictMath.sqrt(2 * exponential()) * StrictMath.cos(2 * Math.PI * uniform());
  }
}
