package dev.vgpu.bench.colocation;

import java.util.Locale;

/** How long the offline programs' kernels are: drawn between two lengths. */
enum Kernels {
  /** 0.1 to 0.5 ms. */
  SHORT(100_000, 500_000),
  /** 0.1 to 10 ms, each order of magnitude as likely as the other. */
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
