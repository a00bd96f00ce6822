package dev.vgpu.bench.chaos;

/** Something did not hold that always must. */
final class ChaosFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  ChaosFailure(String message) {
    super(message);
  }
}
