package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** A virtual GPU of the suite; its lease may end and be acquired again. Confined to one thread. */
public final class Tenant {
  /** What its leases' names begin with. */
  public final String name;

  /** How its share is enforced. */
  public final SharePolicy policy;

  /** Its share, in percent; 0 for best effort. */
  public final int percent;

  final PreemptionClass preemptionClass;
  final MemorySize quota;

  /** The GPU on which it must be; empty for any. */
  final String gpu;

  private int generation;
  private @Nullable PoolProcess owner;
  private Map<String, String> environment = Map.of();

  /** A tenant without a lease, on any GPU. */
  public Tenant(
      String name,
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      MemorySize quota) {
    this(name, policy, percent, preemptionClass, quota, "");
  }

  /** A tenant without a lease, on one GPU. */
  public Tenant(
      String name,
      SharePolicy policy,
      int percent,
      PreemptionClass preemptionClass,
      MemorySize quota,
      String gpu) {
    this.gpu = gpu;
    this.name = name;
    this.policy = policy;
    this.percent = percent;
    this.preemptionClass = preemptionClass;
    this.quota = quota;
  }

  /** Acquires a new lease. */
  public void acquire(PoolProcess pool) throws InterruptedException {
    generation++;
    String where = gpu.isEmpty() ? "fixed" : "fixed " + gpu;
    environment = pool.acquire(leaseName(), policy, percent, preemptionClass, quota, where);
    owner = pool;
  }

  /** Gives its lease back. */
  public void release() throws InterruptedException {
    Objects.requireNonNull(owner, "owner").release(leaseName());
    owner = null;
    environment = Map.of();
  }

  private String leaseName() {
    return name + generation;
  }

  /** Records that its owner was killed: the lease lasts as long as it has programs. */
  public void orphan(PoolProcess killed) {
    if (owner == killed) {
      owner = null;
    }
  }

  /** {@return whether no process holds its lease} */
  public boolean isOrphan() {
    return owner == null;
  }

  /** The environment that puts a program under it. */
  public Map<String, String> environment() {
    return environment;
  }

  /** The lease's id; empty before the first lease. */
  public String lease() {
    return environment.getOrDefault("VGPU_LEASE", "");
  }
}
