package dev.vgpu.nvml.mig.plan;

import dev.vgpu.GpuId;
import java.util.List;

/**
 * Where an instance goes, and why. Immutable.
 *
 * @param chosen the place
 * @param candidates all places that were legal, the best first; with {@link #moves} only the chosen
 * @param moves what has to be moved first, in this order; empty: nothing
 */
public record MigPlan(Candidate chosen, List<Candidate> candidates, List<Move> moves) {
  /** Copies the lists. */
  public MigPlan {
    candidates = List.copyOf(candidates);
    moves = List.copyOf(moves);
  }

  /**
   * A place for an instance.
   *
   * @param gpu which GPU
   * @param profile the kind of instance
   * @param start its first memory slice
   * @param optionsBefore how many of the next 20 requests the GPU can take as it is, as expected
   * @param optionsAfter how many besides this one
   * @param remains for each kind, how many places remain: {@code 1g.10gb 5, 2g.20gb 2}
   */
  public record Candidate(
      GpuId gpu,
      MigProfile profile,
      int start,
      double optionsBefore,
      double optionsAfter,
      String remains) {
    /** {@return how many requests that may come it costs, as expected} */
    public double loss() {
      return optionsBefore - optionsAfter;
    }
  }

  /**
   * An instance that is destroyed, and made anew elsewhere.
   *
   * @param instance which one
   * @param from its GPU
   * @param to where it goes
   * @param start its first memory slice there
   */
  public record Move(MigInstance instance, GpuId from, GpuId to, int start) {}
}
