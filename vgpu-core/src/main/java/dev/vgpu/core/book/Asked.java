package dev.vgpu.core.book;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.ProcessIdentity;
import java.util.List;

/**
 * A request and who made it.
 *
 * @param request what is asked
 * @param by on whose behalf
 */
public record Asked(VirtualGpuRequest request, Claimant by) {
  /** A pool of this JVM, or another process. */
  public interface Claimant {
    /** Those that are closed together have one owner. */
    Object owner();

    /** Whether it wants nothing any more. */
    boolean isClosed();

    /** Whether it lives in another process than this one, which has to keep account of it. */
    default boolean isAnotherProcess() {
      return false;
    }

    /** The process that it lives in. */
    ProcessIdentity process();

    /** What that process proves with that a virtual GPU is its own, as it is recognised. */
    String ownerKey();

    /** Makes what stands for the calls of a virtual GPU. Called with the table's lock held. */
    BookedCalls calls(String id, List<GpuSlot> on, VirtualGpuRequest request);
  }
}
