package dev.vgpu.bench.gpucheck;

import java.util.List;

/** {@code vgpu gpu-check --pack}. */
final class Pack {
  private Pack() {}

  static int run(List<String> arguments) {
    throw new IllegalStateException("not yet " + arguments);
  }
}
