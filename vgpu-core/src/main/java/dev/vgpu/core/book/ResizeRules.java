package dev.vgpu.core.book;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuLease;
import java.util.List;

/** What a resize may change, in every place that performs one. */
public final class ResizeRules {
  private ResizeRules() {}

  /** {@return the exception that refuses a resize} */
  public static GpuCapacityException cannotResize(
      String id, VirtualGpuRequest asked, String obstacle, GpuLease holder) {
    return new GpuCapacityException(
        "a virtual GPU cannot be resized: id=" + id + " asked " + asked + "; " + obstacle,
        List.of(holder));
  }

  /** Throws if a resize asks for something that it cannot change. */
  public static void checkSameElsewhere(
      VirtualGpuRequest before, VirtualGpuRequest asked, String id, List<GpuId> gpus) {
    if (!gpus.containsAll(asked.gpus())
        || asked.gpuCount() != before.gpuCount()
        || !asked.name().equals(before.name())
        || !asked.requires().equals(before.requires())
        || !asked.backend().equals(before.backend())
        || !asked.part().equals(before.part())
        || asked.failureMode() != before.failureMode()) {
      throw new IllegalArgumentException(
          "a resize keeps the GPUs, the name, the backend, the part and the demanded"
              + " capabilities: id="
              + id
              + " holds "
              + before
              + ", asked "
              + asked);
    }
  }

  /** Throws if one of its GPUs has no room for the new terms. */
  static void checkFits(Booking booking, VirtualGpuRequest asked, Placement placement) {
    for (GpuBook book : booking.books) {
      if (!book.fits(asked)) {
        throw new GpuCapacityException(
            "a virtual GPU cannot be resized: id="
                + booking.id
                + ": "
                + placement.refusal(asked, ""),
            Booking.snapshots(GpuBook.holders(List.of(book))));
      }
    }
  }
}
