package dev.vgpu.nvml.mps;

import dev.vgpu.VgpuException;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One GPU's daemon, and the leases that use it. The lock is held while the daemon handles a
 * command, which may take seconds; reading the leases does not take it. Safe for use by several
 * threads.
 */
final class MpsGpu {
  private static final Logger log = LoggerFactory.getLogger(MpsGpu.class);

  private final MpsDaemon daemon;
  private final int mostClients;
  private final Runnable whenUnused;
  private final ReentrantLock lock = new ReentrantLock();
  private final List<MpsLease> leases = new CopyOnWriteArrayList<>();

  // Guarded by the lock.
  private long server;
  private final Set<Long> clients = new HashSet<>();

  MpsGpu(MpsDaemon daemon, int mostClients, Runnable whenUnused) {
    this.daemon = daemon;
    this.mostClients = mostClients;
    this.whenUnused = whenUnused;
  }

  Map<String, String> clientEnvironment() {
    return daemon.clientEnvironment();
  }

  GpuId gpu() {
    return daemon.gpu();
  }

  /** Adds a lease, and makes sure that the daemon runs. */
  MpsLease add(String id, Supplier<MpsLease> make) {
    lock.lock();
    try {
      daemon.use(id);
      boolean made = false;
      try {
        Optional<String> failure = daemon.ensure();
        failure.ifPresent(why -> tell("the MPS control daemon had failed: " + why, leases));
        MpsLease lease = make.get();
        leases.add(lease);
        made = true;
        return lease;
      } finally {
        if (!made) {
          daemon.leave(id);
        }
        if (!made && leases.isEmpty() && !daemon.isUsed()) {
          daemon.stop();
        }
      }
    } finally {
      lock.unlock();
    }
  }

  void remove(MpsLease lease) {
    daemon.leave(lease.id());
    if (leases.remove(lease) && leases.isEmpty()) {
      whenUnused.run(); // on another thread: it takes long
    }
  }

  /** Stops the daemon if no lease uses it, and none is yet to be restored. */
  void stopIfUnused() {
    lock.lock();
    try {
      if (leases.isEmpty() && !daemon.isUsed()) {
        daemon.stop();
        server = 0;
        clients.clear();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Stops a daemon that an earlier holder of the seat left, unless one of its leases lives on. */
  void stopIfLeft() {
    lock.lock();
    try {
      if (leases.isEmpty() && !daemon.isUsed()) {
        log.info("an MPS control daemon that nobody uses any more is stopped: gpu={}", gpu());
        daemon.stop();
      }
    } finally {
      lock.unlock();
    }
  }

  private int processes() {
    return leases.stream().mapToInt(lease -> lease.pids().size()).sum();
  }

  void checkRoomForAClient() {
    lackOfClients()
        .ifPresent(
            lack -> {
              throw new VgpuException("no program can start under MPS: " + lack);
            });
  }

  private Optional<String> lackOfClients() {
    int has = processes();
    return has < mostClients
        ? Optional.empty()
        : Optional.of(
            "it serves at most "
                + mostClients
                + " processes of gpu="
                + gpu()
                + " and has "
                + has
                + "; end one, or use turns");
  }

  /** {@return why one more lease does not fit beside the present ones} */
  Optional<String> lack(VirtualGpuRequest request) {
    boolean share = request.computePercent().isPresent();
    List<String> others =
        leases.stream().filter(lease -> lease.hasShare() != share).map(MpsLease::id).toList();
    if (!others.isEmpty()) {
      return Optional.of(
          (share ? "a share cannot be held beside best effort" : "best effort would take others'")
              + " under MPS, which bounds programs and guarantees nothing: held by "
              + others);
    }
    return lackOfClients();
  }

  // ---- supervision

  /** Checks daemon and server, restarts a failed one, and reports the leases that were affected. */
  void supervise() {
    lock.lock();
    try {
      if (leases.isEmpty()) {
        return;
      }
      Optional<String> failure = daemon.ensure();
      List<Long> servers = daemon.servers();
      if (failure.isPresent()) {
        tell("the MPS control daemon " + failure.get() + " and was started anew", inReach());
      } else if (server != 0 && !servers.contains(server)) {
        List<MpsLease> reached = inReach();
        daemon.startServer();
        tell(
            "the MPS server ended, as after a client's fault, and was started anew: pid=" + server,
            reached);
        servers = daemon.servers();
      }
      remember(servers);
    } catch (VgpuException e) {
      log.warn("MPS cannot be looked after now, and is tried again: gpu={}", gpu(), e);
    } finally {
      lock.unlock();
    }
  }

  private void remember(List<Long> servers) {
    clients.clear();
    server = servers.isEmpty() ? 0 : servers.get(0);
    if (server != 0) {
      clients.addAll(daemon.clients(server));
    }
  }

  /**
   * {@return the leases that had a client at the last check} If no client is known: all that have
   * processes. If no lease matches: all.
   */
  private List<MpsLease> inReach() {
    List<MpsLease> reached = new ArrayList<>();
    for (MpsLease lease : leases) {
      List<Long> pids = lease.pids();
      boolean isReached =
          clients.isEmpty() ? !pids.isEmpty() : pids.stream().anyMatch(clients::contains);
      if (isReached) {
        reached.add(lease);
      }
    }
    return reached.isEmpty() && !clients.isEmpty() ? List.copyOf(leases) : reached;
  }

  private void tell(String what, List<MpsLease> reached) {
    String reason =
        what
            + " gpu="
            + gpu()
            + "; in its reach: "
            + (reached.isEmpty() ? "nobody" : reached.stream().map(MpsLease::id).toList());
    log.warn("{}", reason);
    reached.forEach(lease -> lease.disturbed(reason));
  }
}
