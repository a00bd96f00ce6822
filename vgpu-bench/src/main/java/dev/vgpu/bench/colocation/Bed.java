package dev.vgpu.bench.colocation;

import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * A node with one GPU and a seat, and the virtual GPUs of one online and some offline programs. The
 * virtual GPUs are permanent; programs come and go. Confined to one thread.
 */
final class Bed implements AutoCloseable {
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(1);
  private static final int ONLINE_PERCENT = 50;

  private final Node node;
  private final PoolProcess pool;
  private final Map<String, String> online;
  private final List<Map<String, String>> offline = new ArrayList<>();

  private Bed(Node node, PoolProcess pool, int trainers) throws InterruptedException {
    this.node = node;
    this.pool = pool;
    this.online =
        pool.acquire(
            "online", SharePolicy.BURST_SHARE, ONLINE_PERCENT, PreemptionClass.ONLINE, QUOTA);
    for (int i = 0; i < trainers; i++) {
      offline.add(
          pool.acquire("offline" + i, SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, QUOTA));
    }
  }

  /**
   * Opens a test bed.
   *
   * @param trainers the largest number of offline programs
   * @param settings of the seat, see {@link Node#openPool}
   */
  static Bed open(int trainers, String... settings) throws InterruptedException {
    Node node = Node.open(Map.of());
    try {
      return new Bed(node, node.openPool(settings), trainers);
    } catch (IllegalStateException | InterruptedException e) {
      node.close();
      throw e;
    }
  }

  Node node() {
    return node;
  }

  PoolProcess pool() {
    return pool;
  }

  /** {@return the environment of the online program} */
  Map<String, String> online(boolean bare) {
    return bare ? Node.bare(online) : online;
  }

  /** {@return the environment of an offline program} */
  Map<String, String> offline(int index, boolean bare) {
    return bare ? Node.bare(offline.get(index)) : offline.get(index);
  }

  @Override
  public void close() {
    node.close();
  }
}
