package dev.vgpu.testing;

import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * The seed of a run's random tests: the environment variable {@value #VARIABLE}, or a new number
 * for each test process, which is printed. Safe for use by several threads.
 */
public final class TestSeed {
  /** Set it to the number that a run printed, to repeat the same random values. */
  public static final String VARIABLE = "VGPU_TEST_SEED";

  private static final long SEED = seed(System.getenv(VARIABLE));

  private TestSeed() {}

  private static long seed(@Nullable String given) {
    long seed =
        given == null || given.isEmpty()
            ? new Random().nextInt(Integer.MAX_VALUE)
            : Long.parseLong(given);
    System.err.println(VARIABLE + "=" + seed + " repeats what these tests draw");
    return seed;
  }

  /** {@return the seed, which fits the C tests' unsigned int if it was drawn here} */
  public static long seed() {
    return SEED;
  }

  /** {@return a generator for a test; the same sequence in each run with the same seed} */
  public static Random random() {
    return new Random(SEED);
  }
}
