package dev.vgpu.core.pool;

import com.google.common.collect.ImmutableList;
import dev.vgpu.BackendStatus;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.spi.GpuProvider;
import java.util.ArrayList;
import java.util.List;
import java.util.ServiceLoader;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Asks the installed providers for GPUs. Immutable. */
final class Discovery {
  private static final Logger log = LoggerFactory.getLogger(Discovery.class);

  private final List<GpuProvider> providers;

  Discovery(List<GpuProvider> providers) {
    this.providers = List.copyOf(providers);
  }

  static Discovery installed() {
    return new Discovery(ImmutableList.copyOf(ServiceLoader.load(GpuProvider.class)));
  }

  /** All GPUs that are found; this machine's CPU if there are none. */
  List<PhysicalGpu> gpus() {
    List<PhysicalGpu> gpus = new ArrayList<>();
    for (GpuProvider provider : providers) {
      gpus.addAll(provider.gpus());
    }
    if (gpus.isEmpty()) {
      gpus.add(HostGpu.ofThisMachine());
    }
    return gpus;
  }

  /** Says in the log what a pool stands on, once for each pool that is newly opened. */
  static void logFound(List<PhysicalGpu> gpus) {
    for (PhysicalGpu gpu : gpus) {
      if (gpu instanceof HostGpu) {
        log.info(
            "no GPU found: the device 'host' stands for this machine's CPU, {}, usable memory {} MiB",
            gpu.model(),
            gpu.usableMemory().bytes() >> 20);
      } else {
        log.info("gpu={} model={} provider={}", gpu.id(), gpu.model(), gpu.provider());
      }
    }
  }

  List<BackendStatus> statuses() {
    List<BackendStatus> statuses = new ArrayList<>();
    for (GpuProvider provider : providers) {
      statuses.add(provider.status());
    }
    return statuses;
  }
}
