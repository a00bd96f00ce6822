package dev.vgpu.core.seat;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.VgpuException;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.node.Node;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The options of the seat's holder, which apply to its clients as well. */
final class HolderOptions {
  private static final Logger log = LoggerFactory.getLogger(HolderOptions.class);

  private HolderOptions() {}

  /** Throws if the holder manages other GPUs than a client has asked for, or has managed. */
  static void check(SeatClient with, Node node, List<PhysicalGpu> asked) {
    Set<GpuId> theirs = Node.ids(with.gpus());
    Set<GpuId> ours = Node.ids(node.gpus().isEmpty() ? asked : node.gpus());
    if (!ours.isEmpty() && !ours.equals(theirs)) {
      throw new VgpuException(
          "the process that has the seat manages other GPUs: "
              + with.holder()
              + " gpus="
              + theirs
              + ", asked="
              + ours
              + "; leave the GPUs out of the options, or use another run directory");
    }
    node.optedFor().check(with.gpus());
    boolean optedForNothing = node.optedFor().equals(PoolSettings.from(GpuPoolOptions.defaults()));
    if (!optedForNothing && !with.settings().equals(node.optedFor())) {
      log.warn(
          "the seat's holder uses different options, which apply here as well: {} {}",
          with.holder(),
          with.settings());
    }
  }
}
