package dev.vgpu.kmod;

import dev.vgpu.VgpuException;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import java.io.Closeable;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * A lease that is a tenant of the kernel module. The quota is enforced. There is no gate, so the
 * scheduler treats the lease as one that never has work; {@link UrgentWork} has offline leases
 * yield. Safe for use by several threads.
 */
final class KmodLease implements EnforcedLease {
  private static final String LIMIT = "limit";

  /** The shell enters the cgroup, and becomes the program. 0 stands for the writer. */
  private static final String ENTER =
      "echo 0 >\"$" + KmodBackend.CGROUP + "/cgroup.procs\" || exit 126; exec \"$@\"";

  private final KmodEnforcement enforcement;
  private final Tenants tenants;
  private final String tenant;
  private final Path cgroup;
  private final Closeable events;
  private final Listener listener;
  private volatile boolean yields;
  private volatile boolean suspended;
  private volatile boolean closed;

  KmodLease(
      KmodEnforcement enforcement,
      Tenants tenants,
      String tenant,
      Path cgroup,
      Closeable events,
      Listener listener) {
    this.events = events;
    this.enforcement = enforcement;
    this.tenants = tenants;
    this.tenant = tenant;
    this.cgroup = cgroup;
    this.listener = listener;
  }

  /** Sets the terms. The limit is set first, because a tenant without one is unlimited. */
  void grant(VirtualGpuRequest request) throws IOException {
    tenants.set(tenant, LIMIT, Long.toString(request.memory().bytes()));
    tenants.set(tenant, "weight", Integer.toString(request.computePercent().orElse(0)));
    tenants.set(tenant, "class", request.preemptionClass().name().toLowerCase(Locale.ROOT));
    yields = request.preemptionClass() == PreemptionClass.OFFLINE;
  }

  /** {@return whether it has processes that offline leases yield to when they use the GPU} */
  boolean mayHaveUrgentWork() {
    return !yields && !suspended && !closed && !processes().isEmpty();
  }

  /**
   * {@return whether its processes use the GPU} The kernel sees no launches: a process that has
   * objects of the driver's counts as one that has work.
   */
  boolean hasUrgentWork() {
    return mayHaveUrgentWork() && stat("objects") > 0;
  }

  String tenant() {
    return tenant;
  }

  Path cgroup() {
    return cgroup;
  }

  /** Stops watching the cgroup. */
  void forget() {
    try {
      events.close();
    } catch (IOException e) {
      // The descriptor stays open until this process ends.
    }
  }

  /** The cgroup became populated or empty. */
  void processesChanged() {
    listener.processes(processes().size());
  }

  @Override
  public void open() {
    // A lease of this backend takes no turns.
  }

  @Override
  public boolean shut() {
    return true;
  }

  @Override
  public int preempt() {
    return 0;
  }

  @Override
  public boolean hasWork() {
    return false;
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    return 0; // The kernel sees no launches.
  }

  @Override
  public void contended(boolean contended) {
    // A lease of this backend takes no turns.
  }

  @Override
  public long leastTurnNs() {
    return 0;
  }

  @Override
  public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
    if (memoryUsed().bytes() > request.memory().bytes()) {
      return false;
    }
    try {
      grant(request);
      enforcement.urgent().changed();
      return true;
    } catch (IOException e) {
      throw new VgpuException("the module rejected the new terms: tenant=" + tenant, e);
    }
  }

  @Override
  public Map<String, String> environment() {
    return Map.of(KmodBackend.CGROUP, cgroup.toString());
  }

  @Override
  public List<String> launcher() {
    return List.of("/bin/sh", "-c", ENTER, "vgpu");
  }

  @Override
  public MemorySize memoryUsed() {
    try {
      return MemorySize.ofBytes(Tenants.number(tenants.text(tenant, "used")));
    } catch (IOException e) {
      return MemorySize.ZERO; // it has ended
    }
  }

  @Override
  public List<Long> processes() {
    return Machine.processes(cgroup);
  }

  @Override
  public Optional<String> impaired() {
    return tenants.exists(tenant)
        ? Optional.empty()
        : Optional.of("its tenant is missing: " + tenant + " was removed, or the module unloaded");
  }

  @Override
  public int waiting() {
    return 0;
  }

  @Override
  public long deniedAllocations() {
    return stat("refused");
  }

  private long stat(String name) {
    try {
      return tenants.stat(tenant, name);
    } catch (IOException e) {
      return 0; // it has ended
    }
  }

  @Override
  public void finishing(boolean finish) {
    suspended = finish;
    enforcement.urgent().changed();
  }

  @Override
  public Optional<String> preemptionReason() {
    return yields && !processes().isEmpty()
        ? enforcement.urgent().failure().or(this::refusal)
        : Optional.empty();
  }

  private Optional<String> refusal() {
    long groups = stat("resisting");
    return groups == 0
        ? Optional.empty()
        : Optional.of(
            "the driver refuses to stop its work, which runs beside that of urgent leases;"
                + " the stop is tried again: groups="
                + groups);
  }

  @Override
  public long launches() {
    return 0;
  }

  @Override
  public long passedThrough() {
    return 0;
  }

  /** Existing allocations stay. The lease gets no more memory, and ends with its last process. */
  @Override
  public void close() {
    closed = true;
    try {
      tenants.set(tenant, LIMIT, "0");
    } catch (IOException e) {
      // The tenant is already gone.
    }
    enforcement.ends(this);
  }
}
