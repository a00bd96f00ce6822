package dev.vgpu.core.node;

import dev.vgpu.core.book.Asked;
import dev.vgpu.core.book.GpuBook;
import dev.vgpu.core.disk.ProcessIdentity;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A request for a virtual GPU by a pool of this JVM.
 *
 * @param request what is requested
 * @param node the pool's node
 * @param pool the pool, which closes the lease when it is closed
 * @param creationSite where the caller's code acquires it; null when leaks are not tracked
 */
public record LocalClaim(
    VirtualGpuRequest request, Node node, LeaseOwner pool, @Nullable Throwable creationSite)
    implements Asked.Claimant {
  @Override
  public Object owner() {
    return pool;
  }

  @Override
  public boolean isClosed() {
    return pool.isClosed();
  }

  @Override
  public ProcessIdentity process() {
    return node.self();
  }

  @Override
  public String ownerKey() {
    return node.secret().key();
  }

  @Override
  public Lease calls(String id, List<GpuBook> on, VirtualGpuRequest granted) {
    return lease(id, on.stream().map(book -> new NodeGpu(book.gpu, book.seat)).toList());
  }

  /** Creates the lease that was granted. */
  public Lease lease(String id, List<NodeGpu> gpus) {
    Lease lease = new Lease(id, gpus, this);
    pool.add(lease);
    node.add(lease);
    return lease;
  }
}
