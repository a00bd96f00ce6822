package dev.vgpu;

import java.util.Optional;

/**
 * What a pool makes of one backend on one GPU for a request. Immutable. May gain methods.
 *
 * @see GpuPool#explain(VirtualGpuRequest)
 */
public interface BackendChoice {
  /** What comes of it. */
  enum Verdict {
    /** It would serve the request now. */
    CHOSEN,
    /** It could now, but another that can costs less, or another GPU suits better. */
    POSSIBLE,
    /** It could, but not while others hold what they hold. */
    NOT_NOW,
    /** It cannot. */
    IMPOSSIBLE
  }

  /** {@return the GPU} */
  GpuId gpu();

  /** {@return the backend's name, as in {@link GpuPool#backends()}} */
  String backend();

  /** {@return what comes of it} */
  Verdict verdict();

  /** {@return why, in words for people; never empty} */
  String reason();

  /**
   * {@return what it costs to be served so, on a scale without a unit: the possible backend with
   * the lowest is chosen} 0: turns inside a JVM.
   */
  int cost();

  /** {@return what it enforces on this GPU; empty if it does not work here} */
  Optional<Capabilities> capabilities();
}
