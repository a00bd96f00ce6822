package dev.vgpu.core.discovery;

import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.spi.GpuHealthListener;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.ServiceLoader;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Finds GPUs through the installed providers. Thread-safe. */
public final class Discovery {
  private static final Logger log = LoggerFactory.getLogger(Discovery.class);

  private final Supplier<List<GpuProvider>> find;
  private final ReentrantLock lock = new ReentrantLock();
  private @Nullable List<GpuProvider> providers;
  private volatile @Nullable Map<GpuId, GpuProvider> providerOf;

  /** Creates a discovery over these providers. */
  public Discovery(List<GpuProvider> providers) {
    this(() -> providers);
  }

  private Discovery(Supplier<List<GpuProvider>> find) {
    this.find = find;
  }

  /** {@return a discovery over the installed providers} */
  public static Discovery installed() {
    return new Discovery(
        () -> Installed.of(GpuProvider.class, in -> ServiceLoader.load(GpuProvider.class, in)));
  }

  private List<GpuProvider> providers() {
    lock.lock();
    try {
      if (providers == null) {
        providers = List.copyOf(find.get());
      }
      return providers;
    } finally {
      lock.unlock();
    }
  }

  /** Finds all GPUs. If there are none, the result is this machine's CPU. */
  public List<PhysicalGpu> gpus() {
    List<PhysicalGpu> gpus = new ArrayList<>();
    Map<GpuId, GpuProvider> by = new HashMap<>();
    for (GpuProvider provider : providers()) {
      for (PhysicalGpu gpu : provider.gpus()) {
        if (by.putIfAbsent(gpu.id(), provider) == null) {
          gpus.add(gpu);
        }
      }
    }
    providerOf = Map.copyOf(by);
    if (gpus.isEmpty()) {
      gpus.add(HostGpu.ofThisMachine());
    }
    return gpus;
  }

  /** The environment variables that make these GPUs, and no others, visible to a process. */
  public Map<String, String> environment(List<GpuId> gpus) {
    Map<GpuId, GpuProvider> known = providerOf;
    if (known == null) {
      List<PhysicalGpu> ignored = gpus();
      return environment(gpus);
    }
    GpuProvider provider = known.get(gpus.get(0));
    if (gpus.stream().anyMatch(gpu -> known.get(gpu) != provider)) {
      throw new VgpuException("the GPUs are found by different providers: gpus=" + gpus);
    }
    return provider == null ? Map.of() : provider.environment(gpus);
  }

  /** {@return what a GPU's id is unique in; empty: this machine} */
  public String scope(GpuId gpu) {
    Map<GpuId, GpuProvider> known = providerOf;
    GpuProvider provider = known == null ? null : known.get(gpu);
    return provider == null ? "" : provider.scope(gpu);
  }

  /** The memory of a GPU that is free now; empty if its driver does not report it. */
  public Optional<MemorySize> freeMemory(GpuId gpu) {
    Map<GpuId, GpuProvider> known = providerOf;
    GpuProvider provider = known == null ? null : known.get(gpu);
    return provider == null ? Optional.empty() : provider.freeMemory(gpu);
  }

  /** What the drivers report about these GPUs now, in the order of {@code gpus}. */
  public List<GpuReading> readings(List<PhysicalGpu> gpus) {
    Map<GpuId, GpuReading> all = new HashMap<>();
    for (GpuProvider provider : providers()) {
      provider.readings().forEach(reading -> all.putIfAbsent(reading.gpu(), reading));
    }
    return gpus.stream().map(gpu -> all.get(gpu.id())).filter(Objects::nonNull).toList();
  }

  /** Makes all providers watch their GPUs. If one cannot, none does. */
  public GpuPool.Listening watch(GpuHealthListener listener) {
    List<GpuPool.Listening> watches = new ArrayList<>();
    boolean all = false;
    try {
      providers().forEach(provider -> watches.add(provider.watch(listener)));
      all = true;
    } finally {
      if (!all) {
        close(watches);
      }
    }
    return () -> close(watches);
  }

  private static void close(List<GpuPool.Listening> watches) {
    for (GpuPool.Listening each : watches) {
      try {
        each.close();
      } catch (RuntimeException | Error e) {
        log.warn("the GPUs of a provider are still watched", e);
      }
    }
  }

  /** Logs the GPUs of a pool. */
  public static void logFound(List<PhysicalGpu> gpus) {
    for (PhysicalGpu gpu : gpus) {
      if (gpu instanceof HostGpu) {
        log.info(
            "no GPU found: the device 'host' stands for this machine's CPU, {}, usable memory {}"
                + " MiB",
            gpu.model(),
            gpu.usableMemory().bytes() >> 20);
      } else {
        log.info("gpu={} model={} provider={}", gpu.id(), gpu.model(), gpu.provider());
      }
    }
  }

  /** {@return the status of each provider} */
  public List<BackendStatus> statuses() {
    List<BackendStatus> statuses = new ArrayList<>();
    for (GpuProvider provider : providers()) {
      statuses.add(provider.status());
    }
    return statuses;
  }
}
