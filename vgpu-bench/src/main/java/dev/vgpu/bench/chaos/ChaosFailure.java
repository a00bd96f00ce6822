package dev.vgpu.bench.chaos;

/** Thrown if an invariant does not hold. */
final class ChaosFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ChaosFailure(String message) {
    super(message);
  }
}
