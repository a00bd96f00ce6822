package dev.vgpu.bench.colocation;

import java.util.Locale;

/** The range of lengths from which the offline programs' kernels are drawn. */
enum Kernels {
  /** 0.1 to 0.5 ms. */
  SHORT(100_000, 500_000),
  /** 0.1 to 10 ms, with every order of magnitude equally likely. */
  MIXED(100_000, 10_000_000);

  private final long leastNs;
  private final long mostNs;

  Kernels(long leastNs, long mostNs) {
    this.leastNs = leastNs;
    this.mostNs = mostNs;
  }

  long leastNs() {
    return leastNs;
  }

  long mostNs() {
    return mostNs;
  }

  /** {@return the word on the command line} */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
