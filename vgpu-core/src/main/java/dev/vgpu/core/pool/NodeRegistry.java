package dev.vgpu.core.pool;

import dev.vgpu.GpuId;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.schedule.SchedulerSettings;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The nodes of this JVM, so that two pools never schedule one GPU against each other: a second pool
 * on the same GPUs shares the first one's node. A node stays until its last pool is closed and the
 * last call has left its GPUs.
 */
final class NodeRegistry {
  private static final ReentrantLock lock = new ReentrantLock();
  private static final List<Entry> entries = new ArrayList<>();

  private static final class Entry {
    final Node node;
    final Set<GpuId> gpus;
    int pools;

    Entry(Node node, Set<GpuId> gpus) {
      this.node = node;
      this.gpus = gpus;
    }
  }

  private NodeRegistry() {}

  static NodePool open(GpuPoolOptions options, Discovery discovery, NanoClock clock) {
    List<PhysicalGpu> gpus = options.gpus().orElseGet(discovery::gpus);
    Set<GpuId> ids = new HashSet<>(gpus.stream().map(PhysicalGpu::id).toList());
    lock.lock();
    try {
      Entry entry = find(ids, options);
      if (entry == null) {
        Discovery.logFound(gpus);
        entry = new Entry(new Node(gpus, options, clock, NodeRegistry::leaseReleased), ids);
        entries.add(entry);
      }
      entry.pools++;
      Entry opened = entry;
      return new NodePool(entry.node, options.leakTracking(), discovery, () -> poolClosed(opened));
    } finally {
      lock.unlock();
    }
  }

  private static @Nullable Entry find(Set<GpuId> ids, GpuPoolOptions options) {
    for (Entry entry : entries) {
      if (entry.gpus.equals(ids) && entry.node.settings().equals(SchedulerSettings.from(options))) {
        return entry;
      }
      Set<GpuId> both = new HashSet<>(entry.gpus);
      both.retainAll(ids);
      if (!both.isEmpty()) {
        throw new IllegalStateException(
            "a GPU is managed in this JVM already, by a pool with other GPUs or other options: gpus="
                + both);
      }
    }
    return null;
  }

  private static void poolClosed(Entry entry) {
    lock.lock();
    try {
      entry.pools--;
      retireIfUnused(entry);
    } finally {
      lock.unlock();
    }
  }

  private static void leaseReleased(Node node) {
    lock.lock();
    try {
      entries.stream()
          .filter(entry -> entry.node == node)
          .findFirst()
          .ifPresent(NodeRegistry::retireIfUnused);
    } finally {
      lock.unlock();
    }
  }

  private static void retireIfUnused(Entry entry) {
    if (entry.pools == 0 && entry.node.table().isEmpty() && entries.remove(entry)) {
      entry.node.shutDown();
    }
  }
}
