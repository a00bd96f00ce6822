package dev.vgpu.micrometer;

import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import io.micrometer.core.instrument.Counter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The meters of one pool in one registry. They follow the pool's events. A read of a meter takes a
 * new snapshot of the pool if the last one is older than {@link #FRESH_NS}. A read never waits for
 * a snapshot that another thread takes: it uses the previous one.
 */
final class PoolMeters implements AutoCloseable {
  private static final long FRESH_NS = 500_000_000L;
  private static final int MOST_GONE = 1_000;

  private final GpuPool pool;
  private final MeterRegistry registry;
  private final ReentrantLock lock = new ReentrantLock();
  private final Map<Tenant, MeterSet<TenantValues>> tenants = new HashMap<>(); // guarded by lock

  /** The values of tenants without a lease, which count on if one comes; guarded by lock. */
  private final Map<Tenant, TenantValues> gone =
      new LinkedHashMap<>() {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Tenant, TenantValues> eldest) {
          return size() > MOST_GONE;
        }
      };

  private final Map<GpuId, DeviceMeters> devices = new HashMap<>(); // guarded by lock
  private final List<Meter> counters = new ArrayList<>();
  private final Counter refused;
  private final Map<String, Counter> reclaims = new HashMap<>();
  private volatile long lookedNs;
  private volatile boolean closed;
  private GpuPool.@Nullable Listening listening;

  private PoolMeters(GpuPool pool, MeterRegistry registry) {
    this.pool = pool;
    this.registry = registry;
    this.refused =
        register(
            Counter.builder("vgpu.requests.refused")
                .description("Requests for virtual GPUs that were refused, or gave up waiting"));
    for (String step : List.of("asked", "suspended", "ended")) {
      reclaims.put(
          step,
          register(
              Counter.builder("vgpu.reclaims")
                  .description("Times that memory was reclaimed, by the step of the ladder")
                  .tag("step", step)));
    }
  }

  static PoolMeters bind(GpuPool pool, MeterRegistry registry) {
    PoolMeters meters = new PoolMeters(pool, registry);
    try {
      meters.listening = pool.listen(meters::onEvent);
      meters.lookNow();
      return meters;
    } catch (RuntimeException e) {
      meters.close();
      throw e;
    }
  }

  private Counter register(Counter.Builder builder) {
    Counter counter = builder.register(registry);
    counters.add(counter);
    return counter;
  }

  private void onEvent(GpuEvent event) {
    if (event instanceof GpuEvent.Refused) {
      refused.increment();
    } else if (event instanceof GpuEvent.ReclaimAsked) {
      count("asked");
    } else if (event instanceof GpuEvent.Suspended) {
      count("suspended");
    } else if (event instanceof GpuEvent.EndedByReclaim) {
      count("ended");
    } else if (changesMeters(event)) {
      if (event instanceof GpuEvent.Closed end) {
        ended(end);
      }
      lookNow();
    }
  }

  private void ended(GpuEvent.Closed end) {
    lock.lock();
    try {
      tenants.values().forEach(set -> set.source().ended(end.virtualGpu(), end.usage()));
      gone.values().forEach(values -> values.ended(end.virtualGpu(), end.usage()));
    } finally {
      lock.unlock();
    }
  }

  private void count(String step) {
    Counter counter = reclaims.get(step);
    if (counter != null) {
      counter.increment();
    }
  }

  private static boolean changesMeters(GpuEvent event) {
    return event instanceof GpuEvent.Acquired
        || event instanceof GpuEvent.Closed
        || event instanceof GpuEvent.Leaked
        || event instanceof GpuEvent.Resized
        || event instanceof GpuEvent.HealthChanged;
  }

  /** Called before a meter is read. */
  private void lookIfOld() {
    if (nowNs() - lookedNs > FRESH_NS && lock.tryLock()) {
      try {
        look();
      } finally {
        lock.unlock();
      }
    }
  }

  private void lookNow() {
    lock.lock();
    try {
      look();
    } finally {
      lock.unlock();
    }
  }

  private void look() {
    // A gauge that is read while it is registered must not take a snapshot within this one.
    if (closed || lock.getHoldCount() > 1) {
      return;
    }
    long nowNs = nowNs();
    lookedNs = nowNs;
    List<GpuLease> leases;
    List<GpuState> states;
    List<GpuReading> readings;
    try {
      leases = pool.leases();
      states = pool.states();
      readings = pool.readings();
    } catch (IllegalStateException | VgpuException e) {
      // The pool is closed, or no seat answers: old values would be wrong.
      leases = List.of();
      states = List.of();
      readings = List.of();
    }
    updateTenants(byTenant(leases), nowNs);
    updateDevices(states, readings);
  }

  private static Map<Tenant, List<GpuLease>> byTenant(List<GpuLease> leases) {
    Map<Tenant, List<GpuLease>> grouped = new LinkedHashMap<>();
    for (GpuLease lease : leases) {
      for (GpuId gpu : lease.gpus()) {
        grouped
            .computeIfAbsent(Tenant.of(lease.request(), gpu), unused -> new ArrayList<>())
            .add(lease);
      }
    }
    return grouped;
  }

  private void updateTenants(Map<Tenant, List<GpuLease>> grouped, long nowNs) {
    tenants
        .entrySet()
        .removeIf(
            entry -> {
              if (grouped.containsKey(entry.getKey())) {
                return false;
              }
              TenantValues values = entry.getValue().source();
              values.update(entry.getKey().gpu(), List.of(), nowNs);
              gone.put(entry.getKey(), values);
              entry.getValue().remove();
              return true;
            });
    grouped.forEach(
        (tenant, leases) -> {
          MeterSet<TenantValues> known = tenants.get(tenant);
          TenantValues values = known == null ? gone.remove(tenant) : known.source();
          values = values == null ? new TenantValues() : values;
          values.update(tenant.gpu(), leases, nowNs);
          if (known == null) {
            tenants.put(tenant, register(tenant, values));
          }
        });
  }

  private MeterSet<TenantValues> register(Tenant tenant, TenantValues values) {
    return new MeterSet<>(registry, this::lookIfOld, values, tenant.tags())
        .counter(
            "vgpu.gpu.time",
            "seconds",
            "Time during which its work ran on the GPU",
            TenantValues::gpuTimeSeconds)
        .counter(
            "vgpu.copy.time",
            "seconds",
            "Time that its copies took on the copy engines",
            TenantValues::copyTimeSeconds)
        .counter("vgpu.calls", "", "Calls started", TenantValues::calls)
        .counter(
            "vgpu.preemptions",
            "",
            "Calls cancelled for a more urgent tenant",
            TenantValues::preemptions)
        .counter("vgpu.launches", "", "Kernels and graphs launched", TenantValues::launches)
        .counter(
            "vgpu.allocations.denied",
            "",
            "Allocations refused for the quota",
            TenantValues::denied)
        .gauge("vgpu.memory.quota", "bytes", "Memory that it may hold", TenantValues::quota)
        .gauge("vgpu.memory.used", "bytes", "Memory that its processes hold", TenantValues::used)
        .gauge(
            "vgpu.memory.reserved",
            "bytes",
            "Memory that budgets of running calls and reservations take of the quota",
            TenantValues::reserved)
        .gauge(
            "vgpu.share.entitled",
            "ratio",
            "Part of the GPU's time that it is entitled to when all of its class have work",
            TenantValues::entitled)
        .gauge(
            "vgpu.share.held",
            "ratio",
            "Part of the GPU's time that it held of late; NaN until known",
            TenantValues::held)
        .gauge("vgpu.calls.running", "", "Calls inside their turn now", TenantValues::running)
        .gauge("vgpu.calls.waiting", "", "Calls that wait now", TenantValues::waiting)
        .gauge("vgpu.leases", "", "Virtual GPUs of this name now", TenantValues::leases);
  }

  private void updateDevices(List<GpuState> states, List<GpuReading> readings) {
    Map<GpuId, GpuReading> told = new HashMap<>();
    readings.forEach(reading -> told.put(reading.gpu(), reading));
    Map<GpuId, GpuState> shared = new LinkedHashMap<>();
    states.forEach(state -> shared.put(state.gpu(), state));
    devices
        .entrySet()
        .removeIf(
            entry -> {
              if (shared.containsKey(entry.getKey())) {
                return false;
              }
              entry.getValue().remove();
              return true;
            });
    shared.forEach(
        (gpu, state) ->
            devices
                .computeIfAbsent(gpu, id -> new DeviceMeters(registry, this::lookIfOld, id))
                .update(state, told.get(gpu)));
  }

  private long nowNs() {
    return registry.config().clock().monotonicTime();
  }

  @Override
  public void close() {
    if (listening != null) {
      listening.close();
    }
    lock.lock();
    try {
      closed = true;
      tenants.values().forEach(MeterSet::remove);
      tenants.clear();
      devices.values().forEach(DeviceMeters::remove);
      devices.clear();
      counters.forEach(registry::remove);
      counters.clear();
    } finally {
      lock.unlock();
    }
  }
}
