package dev.vgpu.bench.chaos;

/** Thrown if an invariant does not hold. */
public final class ChaosFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** Says what was wrong. */
  public ChaosFailure(String message) {
    super(message);
  }
}
