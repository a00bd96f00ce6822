package dev.vgpu.bench.colocation;

import java.util.Locale;

/** How the programs share the GPU. */
enum Mode {
  /** The online program under a virtual GPU, without offline programs. */
  ALONE,
  /** Online and offline programs on the GPU as if there were no vgpu. */
  UNCONTROLLED,
  /** Under virtual GPUs that share with the default settings. */
  OURS,
  /** Under virtual GPUs that never use the GPU together. */
  STRICT;

  /** {@return the key in the JSON figures} */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
