package dev.vgpu.backend;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.Optional;

/**
 * A pool's verdict on one backend on one GPU for a request. Immutable. May gain methods.
 *
 * @see dev.vgpu.GpuPool#explain(VirtualGpuRequest)
 */
public interface BackendChoice {
  /** The verdict. */
  enum Verdict {
    /** This backend would serve the request now. */
    CHOSEN,
    /**
     * It could serve the request now, but another backend costs less or another GPU suits better.
     */
    POSSIBLE,
    /** It could serve the request, but not while others hold their current parts. */
    NOT_NOW,
    /** It cannot serve the request. */
    IMPOSSIBLE
  }

  /** {@return the GPU} */
  GpuId gpu();

  /** {@return the backend's name, as in {@link dev.vgpu.GpuPool#backends()}} */
  String backend();

  /** {@return the verdict} */
  Verdict verdict();

  /** {@return the reason, in words for people; never empty} */
  String reason();

  /**
   * {@return the cost of this backend, on a unitless scale: the possible backend with the lowest
   * cost is chosen} 0 means turns inside a JVM.
   */
  int cost();

  /**
   * {@return the capabilities that the backend enforces on this GPU; empty if it does not work
   * here}
   */
  Optional<Capabilities> capabilities();
}
