package dev.vgpu.core.pool;

import dev.vgpu.GpuPoolOptions;
import dev.vgpu.ProtocolMismatchException;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.core.NanoClock;
import dev.vgpu.core.ThreadLimit;
import dev.vgpu.core.book.Enforcements;
import dev.vgpu.core.book.LeaseTable;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.discovery.Discovery;
import dev.vgpu.core.discovery.InstalledBackends;
import dev.vgpu.core.disk.RunDirectory;
import dev.vgpu.core.node.HealthWatch;
import dev.vgpu.core.node.LocalAuthority;
import dev.vgpu.core.node.Node;
import dev.vgpu.core.reclaim.Suspensions;
import dev.vgpu.core.seat.GpuLocks;
import dev.vgpu.core.seat.SeatKeeper;
import dev.vgpu.files.RunPlace;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The nodes of this JVM. It ensures that two pools never schedule the same GPU independently: a
 * second pool on the same GPUs, or in the same run directory, shares the first pool's node. A node
 * lives until its last pool is closed and the last call has left its GPUs.
 */
final class NodeRegistry {
  private static final Logger log = LoggerFactory.getLogger(NodeRegistry.class);
  private static final NodeRegistry OF_THIS_JVM =
      new NodeRegistry(System.getenv(), InstalledBackends::load);

  private final Map<String, String> environment;
  private final Supplier<List<EnforcementBackend>> backends;
  private final ReentrantLock lock = new ReentrantLock();
  private final List<Entry> entries = new ArrayList<>();

  private static final class Entry {
    final Node node;
    final Set<GpuId> gpus = new HashSet<>();
    final @Nullable Path runDirectory;
    int pools;

    Entry(Node node, @Nullable Path runDirectory) {
      this.node = node;
      this.runDirectory = runDirectory;
      gpus.addAll(Node.ids(node.gpus()));
    }
  }

  /** Creates a registry. In tests, each registry stands for one process. */
  NodeRegistry(Map<String, String> environment, Supplier<List<EnforcementBackend>> backends) {
    this.environment = environment;
    this.backends = backends;
  }

  static NodePool open(GpuPoolOptions options, Discovery discovery, NanoClock clock) {
    return OF_THIS_JVM.openPool(options, discovery, clock);
  }

  NodePool openPool(GpuPoolOptions options, Discovery discovery, NanoClock clock) {
    lock.lock();
    try {
      Cleaner ignored = LeasedVirtualGpu.cleaner(); // needs a thread, as the pool does
      Entry entry =
          options.scope() == GpuPoolOptions.Scope.NODE
              ? shared(options, discovery, clock)
              : alone(options, discovery, clock, null);
      entry.pools++;
      return new NodePool(
          entry.node, options.leakTracking(), backends, discovery, () -> poolClosed(entry));
    } catch (OutOfMemoryError e) {
      throw ThreadLimit.refusal("no pool can be opened", e);
    } finally {
      lock.unlock();
    }
  }

  private Entry alone(
      GpuPoolOptions options,
      Discovery discovery,
      NanoClock clock,
      @Nullable VgpuException unusable) {
    List<PhysicalGpu> gpus = options.gpus().orElseGet(discovery::gpus);
    PoolSettings settings = PoolSettings.from(options);
    Set<GpuId> ids = Node.ids(gpus);
    for (Entry entry : entries) {
      if (entry.runDirectory == null
          && entry.gpus.equals(ids)
          && entry.node.settings().equals(settings)) {
        return entry;
      }
    }
    checkUnmanaged(ids);
    settings.check(gpus);
    Discovery.logFound(gpus);
    BackendStatus status = null;
    String because = "its options say Scope.THIS_JVM";
    if (unusable != null) {
      because = String.valueOf(unusable.getMessage());
      log.warn("the pool serves this JVM alone: {}", because);
      status = LocalAuthority.unusable(unusable);
    }
    Node node = new Node(settings, clock, this::leaseReleased);
    node.manage(gpus, settings);
    Enforcements none = Enforcements.none(because);
    LeaseTable table = new LeaseTable(node, node.newSlots(), none, null, null);
    Suspensions suspensions = new Suspensions(clock, table, null, List::of);
    node.authority(new LocalAuthority(node, table, none, discovery, suspensions, status));
    HealthWatch health = HealthWatch.start(node, table, discovery);
    node.whenShutDown(
        () -> {
          health.close();
          table.meter().close();
        },
        deadlineNs -> {});
    return add(new Entry(node, null));
  }

  private Entry shared(GpuPoolOptions options, Discovery discovery, NanoClock clock) {
    RunDirectory directory = RunDirectory.resolve(options.runDirectory(), environment);
    for (Entry entry : entries) {
      if (directory.path().equals(entry.runDirectory)) {
        check(entry, options);
        return entry;
      }
    }
    try {
      directory.prepare();
      return add(new Entry(join(directory, options, discovery, clock), directory.path()));
    } catch (VgpuException e) {
      if (directory.origin() != RunPlace.Origin.DEFAULT
          || e instanceof GpuLocks.GpuTakenException
          || e instanceof ProtocolMismatchException) {
        throw e;
      }
      return alone(options, discovery, clock, e);
    }
  }

  private Node join(
      RunDirectory directory, GpuPoolOptions options, Discovery discovery, NanoClock clock) {
    Node node = new Node(PoolSettings.from(options), clock, this::leaseReleased);
    boolean joined = false;
    try {
      SeatKeeper keeper =
          new SeatKeeper(
              node,
              directory,
              discovery,
              options.gpus().orElse(List.of()),
              new GpuLocks(environment, directory.origin()),
              Enforcements.in(directory.path(), backends));
      keeper.join();
      checkUnmanaged(Node.ids(node.gpus()));
      joined = true;
      return node;
    } catch (IOException e) {
      throw new VgpuException("no seat can be kept: " + e.getMessage(), e);
    } finally {
      if (!joined) {
        node.shutDown();
      }
    }
  }

  private static void check(Entry entry, GpuPoolOptions options) {
    Set<GpuId> asked = new HashSet<>();
    options.gpus().ifPresent(gpus -> gpus.forEach(gpu -> asked.add(gpu.id())));
    if (!(asked.isEmpty() || asked.equals(entry.gpus))
        || !entry.node.optedFor().equals(PoolSettings.from(options))) {
      throw alreadyManaged(entry.gpus);
    }
  }

  private static IllegalStateException alreadyManaged(Set<GpuId> gpus) {
    return new IllegalStateException(
        "a GPU is managed in this JVM already, by a pool with other GPUs or other options: gpus="
            + gpus);
  }

  private void checkUnmanaged(Set<GpuId> ids) {
    for (Entry entry : entries) {
      Set<GpuId> both = new HashSet<>(entry.gpus);
      both.retainAll(ids);
      if (!both.isEmpty()) {
        throw alreadyManaged(both);
      }
    }
  }

  private Entry add(Entry entry) {
    entries.add(entry);
    return entry;
  }

  private void poolClosed(Entry entry) {
    lock.lock();
    try {
      entry.pools--;
      retireIfUnused(entry);
    } finally {
      lock.unlock();
    }
    if (entry.node.isShutDown()) {
      entry.node.awaitEnd();
    }
  }

  private void leaseReleased(Node node) {
    lock.lock();
    try {
      entries.stream()
          .filter(entry -> entry.node == node)
          .findFirst()
          .ifPresent(this::retireIfUnused);
    } finally {
      lock.unlock();
    }
  }

  private void retireIfUnused(Entry entry) {
    if (entry.pools == 0 && entry.node.hasNoLeases() && entries.remove(entry)) {
      entry.node.shutDown();
    }
  }
}
