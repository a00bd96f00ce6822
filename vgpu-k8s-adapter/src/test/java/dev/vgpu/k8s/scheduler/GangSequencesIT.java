package dev.vgpu.k8s.scheduler;

import dev.vgpu.k8s.scheduler.line.GangProperties;
import org.junit.jupiter.api.Test;

/**
 * The checks of {@link GangProperties} for a number of sequences, one after the other. {@code
 * VGPU_GANG_SEQUENCES} sets the number, {@code VGPU_GANG_SEED} the first seed.
 */
class GangSequencesIT {
  private static final int SEQUENCES =
      Integer.parseInt(System.getenv().getOrDefault("VGPU_GANG_SEQUENCES", "200"));
  private static final int FIRST =
      Integer.parseInt(System.getenv().getOrDefault("VGPU_GANG_SEED", "0"));

  @Test
  void noGangRunsInPart() {
    for (int seed = FIRST; seed < FIRST + SEQUENCES; seed++) {
      try {
        new GangProperties().allOfAGangRunOrNone(seed);
      } catch (AssertionError | RuntimeException e) {
        throw new AssertionError("seed " + seed + ": " + e.getMessage(), e);
      }
    }
    System.out.println(
        "GangSequencesIT: sequences=" + SEQUENCES + " first seed=" + FIRST + " partial gangs=0");
  }
}
