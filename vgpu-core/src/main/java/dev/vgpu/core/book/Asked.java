package dev.vgpu.core.book;

import dev.vgpu.core.disk.Member;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import java.util.Optional;

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

    /** The member of the seat's group that makes it; empty: the seat's user, or root. */
    default Optional<Member> member() {
      return Optional.empty();
    }

    /** Creates the object for a virtual GPU's calls. Called with the table's lock held. */
    BookedCalls calls(String id, List<GpuBook> on, VirtualGpuRequest request);
  }
}
