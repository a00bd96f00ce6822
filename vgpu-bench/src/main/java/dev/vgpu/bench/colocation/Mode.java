package dev.vgpu.bench.colocation;

import java.util.Locale;

/** Who keeps the programs apart. */
enum Mode {
  /** Nobody beside the online program; it is under a virtual GPU. */
  ALONE,
  /** Online and offline programs on the GPU as if there were no vgpu. */
  UNCONTROLLED,
  /** Under virtual GPUs that share as the settings' defaults say. */
  OURS,
  /** Under virtual GPUs that never use the GPU together. */
  STRICT;

  /** {@return the key in the JSON figures} */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
