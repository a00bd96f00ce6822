package dev.vgpu.core.book;

import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.core.disk.ProcessIdentity;
import java.util.List;

/**
 * A request and who makes it.
 *
 * @param request the request
 * @param by who makes it
 */
public record Asked(VirtualGpuRequest request, Claimant by) {
  /** A pool of this JVM, or another process. */
  public interface Claimant {
    /** The owner; virtual GPUs with the same owner are closed together. */
    Object owner();

    /** Whether it is closed and makes no more requests. */
    boolean isClosed();

    /** Whether it is in another process, so that this process keeps account for it. */
    default boolean isAnotherProcess() {
      return false;
    }

    /** Its process. */
    ProcessIdentity process();

    /**
     * The key by which its process's secret is recognised; the secret proves ownership of a lease.
     */
    String ownerKey();

    /** Creates the object for a virtual GPU's calls. Called with the table's lock held. */
    BookedCalls calls(String id, List<GpuSlot> on, VirtualGpuRequest request);
  }
}
