package dev.vgpu.cli;

import dev.vgpu.GpuPool;
import dev.vgpu.MemorySize;
import java.util.Locale;

/** What several commands say about devices. */
final class Devices {
  /** Said where the only device is this machine's CPU. */
  static final String HOST_EXPLAINED =
      "No GPU provider found a GPU: the device 'host' stands for this machine's CPU.";

  private static final String HOST = "host";
  private static final double BYTES_PER_GIB = 1L << 30;

  private Devices() {}

  /** {@return whether there is no other device than this machine's CPU} */
  static boolean onlyHost(GpuPool pool) {
    return pool.gpus().stream().allMatch(gpu -> gpu.id().value().equals(HOST));
  }

  static String gibibytes(MemorySize size) {
    return String.format(Locale.ROOT, "%.1f GiB", size.bytes() / BYTES_PER_GIB);
  }
}
