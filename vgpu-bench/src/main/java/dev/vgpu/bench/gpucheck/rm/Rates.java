package dev.vgpu.bench.gpucheck.rm;

/** Kernels in a second, of the first program and of the second. Immutable. */
public record Rates(double first, double second) {
  /** {@return the first program's part of the kernels, in percent} */
  public double percent() {
    return sum() == 0 ? 0 : 100 * first / sum();
  }

  /** {@return the kernels of both} */
  public double sum() {
    return first + second;
  }

  /** {@return the rates of kernels that are shorter by a factor} */
  public Rates times(double factor) {
    return new Rates(factor * first, factor * second);
  }
}
