package dev.vgpu.kmod;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.VgpuException;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.watch.PhysicalGpu;
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
 * Enforcement by the kernel module: a tenant and a cgroup for each lease. A tenant is removed only
 * when its cgroup is empty, because its remaining processes would then have no limit.
 */
final class KmodEnforcement implements Enforcement {
  /** The file in a lease's directory that names its cgroup. */
  private static final String NOTE = "kmod-cgroup";

  /**
   * The directory in the run directory with a note for each tenant that this or a former seat has
   * made. It outlives the lease's own directory.
   */
  private static final String MADE = "kmod";

  private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}");

  private final Machine machine;
  private final Tenants tenants;
  private final Path cgroups;
  private final Path leaseDirectories;
  private final Path made;
  private final WatchService watch;
  private final ExecutorService tells = Executors.newSingleThreadExecutor(KmodEnforcement::daemon);
  private final Map<WatchKey, KmodLease> leases = new ConcurrentHashMap<>();
  private final Map<String, KmodLease> ending = new ConcurrentHashMap<>();
  private final UrgentWork urgent;

  /**
   * @param cgroups the directory of the leases' cgroups; below the cgroup of the seat's process, so
   *     that its limits apply to them too
   */
  KmodEnforcement(Machine machine, Path cgroups, Path runDirectory) throws IOException {
    this.machine = machine;
    this.tenants = machine.tenants();
    this.cgroups = Files.createDirectories(cgroups);
    this.leaseDirectories = runDirectory.resolve("leases");
    this.made = Files.createDirectories(runDirectory.resolve(MADE));
    this.watch = cgroups.getFileSystem().newWatchService();
    this.urgent = new UrgentWork(machine, leases::values, KmodEnforcement::daemon);
    sweep();
    daemon(this::watch).start();
  }

  private static Thread daemon(Runnable runs) {
    Thread thread = new Thread(runs, "vgpu-kmod");
    thread.setDaemon(true);
    return thread;
  }

  /**
   * Removes leases that a former seat ended while they still had processes, and tenants that it
   * made and did not live to record: their leases have ended without this backend.
   */
  private void sweep() throws IOException {
    try (var found = Files.newDirectoryStream(made)) {
      for (Path note : found) {
        String tenant = note.getFileName().toString();
        Path cgroup = Path.of(Files.readString(note, UTF_8));
        boolean isLease = Files.exists(leaseDirectories.resolve(tenant));
        if (!cgroup.endsWith(tenant)) { // its writer was killed, before it made anything
          Files.delete(note);
        } else if (!isLease && Machine.processes(cgroup).isEmpty()) {
          remove(tenant, cgroup);
        }
      }
    }
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
      return false; // it is being removed
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
          "the module already has a tenant of this name, not of this lease: id="
              + id
              + "; remove it (rmdir "
              + machine.tenantDirectory().resolve(id)
              + ")");
    }
    Path cgroup = cgroups.resolve(id);
    try {
      if (Files.exists(note)) { // created by an earlier holder of the seat, perhaps elsewhere
        cgroup = Path.of(Files.readString(note, UTF_8));
      } else {
        Files.writeString(note, cgroup.toString(), UTF_8);
      }
      Files.writeString(made.resolve(id), cgroup.toString(), UTF_8);
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
      urgent.changed();
      return lease;
    } catch (IOException e) {
      if (isNew) {
        remove(id, cgroup);
      }
      throw new VgpuException(
          "the module did not accept the tenant: id=" + id + " reason=" + e.getMessage(), e);
    }
  }

  /** Ends a lease, at once or when its last process has ended. */
  void ends(KmodLease lease) {
    ending.put(lease.tenant(), lease);
    endIfEmpty(lease);
    urgent.changed();
  }

  /** Tells the module while urgent leases have work. */
  UrgentWork urgent() {
    return urgent;
  }

  private void endIfEmpty(KmodLease lease) {
    if (lease.processes().isEmpty()
        && remove(lease.tenant(), lease.cgroup())
        && ending.remove(lease.tenant(), lease)) {
      leases.values().remove(lease);
      lease.forget();
    }
  }

  /**
   * Removes the cgroup, then the tenant: a process that enters the cgroup meanwhile keeps both, and
   * their limit of 0, until it ends. The seat's next holder removes what stayed.
   */
  private boolean remove(String tenant, Path cgroup) {
    try {
      machine.removeCgroup(cgroup);
      tenants.remove(tenant);
      Files.deleteIfExists(made.resolve(tenant));
      return true;
    } catch (IOException e) {
      return false;
    }
  }

  private void watch() {
    try {
      for (; ; ) {
        WatchKey key = watch.take();
        key.pollEvents();
        KmodLease lease = leases.get(key);
        if (lease != null) {
          urgent.changed();
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
      // Closed.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public void close() {
    ending.values().forEach(this::endIfEmpty); // those whose end has not been told yet
    tells.shutdown();
    urgent.close();
    leases.values().forEach(KmodLease::forget);
    try {
      watch.close();
    } catch (IOException e) {
      // The descriptor stays open until this process ends.
    }
  }
}
