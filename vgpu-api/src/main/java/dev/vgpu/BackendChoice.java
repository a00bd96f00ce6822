package dev.vgpu;

import java.util.Optional;

/**
 * A pool's judgement of one backend on one GPU for a request. Immutable. May gain methods.
 *
 * @see GpuPool#explain(VirtualGpuRequest)
 */
public interface BackendChoice {
  /** The judgement. */
  enum Verdict {
    /** It would serve the request now. */
    CHOSEN,
    /** It could now, but another that can costs less, or another GPU suits better. */
    POSSIBLE,
    /** It could, but not while others hold their present parts. */
    NOT_NOW,
    /** It cannot. */
    IMPOSSIBLE
  }

  /** {@return the GPU} */
  GpuId gpu();

  /** {@return the backend's name, as in {@link GpuPool#backends()}} */
  String backend();

  /** {@return the judgement} */
  Verdict verdict();

  /** {@return why, in words for people; never empty} */
  String reason();

  /**
   * {@return the cost of being served so, on a scale without a unit: the possible backend with the
   * lowest is chosen} 0: turns inside a JVM.
   */
  int cost();

  /** {@return the capabilities that it enforces on this GPU; empty if it does not work here} */
  Optional<Capabilities> capabilities();
}
