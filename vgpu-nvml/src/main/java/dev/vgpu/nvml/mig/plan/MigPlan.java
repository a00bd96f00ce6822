package dev.vgpu.nvml.mig.plan;

import dev.vgpu.request.GpuId;
import java.util.List;

/**
 * The chosen place for an instance, and the reasons. Immutable.
 *
 * @param chosen the place
 * @param candidates all legal places, the best first; if there are {@link #moves}, only the chosen
 * @param moves what must be moved first, in this order; empty if nothing
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
   * @param profile the instance's profile
   * @param start its first memory slice
   * @param optionsBefore expected number of the next 20 requests that the GPU can take as it is
   * @param optionsAfter the same after this instance is placed
   * @param remains for each profile, how many places remain: {@code 1g.10gb 5, 2g.20gb 2}
   */
  public record Candidate(
      GpuId gpu,
      MigProfile profile,
      int start,
      double optionsBefore,
      double optionsAfter,
      String remains) {
    /** {@return how many future requests the place is expected to cost} */
    public double loss() {
      return optionsBefore - optionsAfter;
    }
  }

  /**
   * An instance that is destroyed and created again elsewhere.
   *
   * @param instance which one
   * @param from its GPU
   * @param to its new GPU
   * @param start its first memory slice there
   */
  public record Move(MigInstance instance, GpuId from, GpuId to, int start) {}
}
