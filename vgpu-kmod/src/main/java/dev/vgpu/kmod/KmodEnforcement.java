package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import java.io.IOException;
import java.nio.file.ClosedWatchServiceException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardWatchEventKinds;
import java.nio.file.WatchKey;
import java.nio.file.WatchService;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.RejectedExecutionException;
import java.util.regex.Pattern;

/**
 * The module at work: a tenant and a cgroup for each lease. A tenant goes only when its cgroup is
 * empty: its processes would be nobody's else, and without any limit.
 */
final class KmodEnforcement implements Enforcement {
  /** In the lease's directory: its cgroup. */
  private static final String NOTE = "kmod-cgroup";

  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}");

  private final Machine machine;
  private final Tenants tenants;
  private final Path cgroups;
  private final WatchService watch;
  private final ExecutorService tells = Executors.newSingleThreadExecutor(KmodEnforcement::daemon);
  private final Map<WatchKey, KmodLease> leases = new ConcurrentHashMap<>();
  private final Map<String, KmodLease> ending = new ConcurrentHashMap<>();

  /**
   * @param cgroups where those of the leases are made; below that of the seat's process, so that
   *     its limits hold for them too
   */
  KmodEnforcement(Machine machine, Path cgroups) throws IOException {
    this.machine = machine;
    this.tenants = machine.tenants();
    this.cgroups = Files.createDirectories(cgroups);
    this.watch = cgroups.getFileSystem().newWatchService();
    sweep();
    daemon(this::watch).start();
  }

  private static Thread daemon(Runnable runs) {
    Thread thread = new Thread(runs, "vgpu-kmod");
    thread.setDaemon(true);
    return thread;
  }

  /** Leases that ended while they had processes, and whose seat is gone. */
  private void sweep() throws IOException {
    try (var found = Files.newDirectoryStream(cgroups, Files::isDirectory)) {
      for (Path cgroup : found) {
        String tenant = cgroup.getFileName().toString();
        if (hasEnded(tenant) && Machine.processes(cgroup).isEmpty()) {
          remove(tenant, cgroup);
        }
      }
    }
  }

  private boolean hasEnded(String tenant) {
    try {
      return tenants.exists(tenant) && tenants.text(tenant, "limit").equals("0");
    } catch (IOException e) {
      return false; // it is just being removed
    }
  }

  @Override
  public EnforcedLease prepare(
      String id,
      Path directory,
      PhysicalGpu gpu,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    if (!NAME.matcher(id).matches()) {
      throw new VgpuException("the lease's id cannot be a tenant's name: id=" + id);
    }
    boolean isNew = !tenants.exists(id);
    Path note = directory.resolve(NOTE);
    if (!isNew && !Files.exists(note)) {
      throw new VgpuException(
          "the module has a tenant of this name, of somebody else: id="
              + id
              + "; remove it (rmdir "
              + machine.tenantDirectory().resolve(id)
              + ")");
    }
    Path cgroup = cgroups.resolve(id);
    try {
      if (Files.exists(note)) { // made by an earlier holder of the seat, perhaps elsewhere
        cgroup = Path.of(Files.readString(note, UTF_8));
      } else {
        Files.writeString(note, cgroup.toString(), UTF_8);
      }
      Files.createDirectories(cgroup);
      if (isNew) {
        tenants.make(id);
      }
      KmodLease lease = new KmodLease(this, tenants, id, cgroup, machine.events(cgroup), listener);
      lease.grant(request);
      tenants.set(id, "cgroup", machine.number(cgroup));
      leases.put(cgroup.register(watch, StandardWatchEventKinds.ENTRY_MODIFY), lease);
      if (!lease.processes().isEmpty()) {
        tells.execute(lease::processesChanged);
      }
      return lease;
    } catch (IOException e) {
      if (isNew) {
        remove(id, cgroup);
      }
      throw new VgpuException(
          "the module took no tenant: id=" + id + " because=" + e.getMessage(), e);
    }
  }

  /** Its processes may live yet. */
  void ends(KmodLease lease) {
    ending.put(lease.tenant(), lease);
    endIfEmpty(lease);
  }

  private void endIfEmpty(KmodLease lease) {
    if (lease.processes().isEmpty() && ending.remove(lease.tenant(), lease)) {
      leases.values().remove(lease);
      lease.forget();
      remove(lease.tenant(), lease.cgroup());
    }
  }

  /** The tenant first: nobody can come into a cgroup that is without one and there. */
  private void remove(String tenant, Path cgroup) {
    try {
      tenants.remove(tenant);
      Files.deleteIfExists(cgroup);
    } catch (IOException e) {
      // A process came in at the last moment; the next holder of the seat looks again.
    }
  }

  private void watch() {
    try {
      for (; ; ) {
        WatchKey key = watch.take();
        key.pollEvents();
        KmodLease lease = leases.get(key);
        if (lease != null) {
          tells.execute(
              () -> {
                lease.processesChanged();
                if (ending.containsKey(lease.tenant())) {
                  endIfEmpty(lease);
                }
              });
        }
        key.reset();
      }
    } catch (ClosedWatchServiceException | RejectedExecutionException e) {
      // The end.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void close() {
    tells.shutdown();
    leases.values().forEach(KmodLease::forget);
    try {
      watch.close();
    } catch (IOException e) {
      // It holds a descriptor until the end of this process.
    }
  }
}
