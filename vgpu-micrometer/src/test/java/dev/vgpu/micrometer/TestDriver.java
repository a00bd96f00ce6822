package dev.vgpu.micrometer;

import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.GpuId;
import dev.vgpu.spi.GpuProvider;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.util.List;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** A driver that finds no GPU, and reports for the tests' GPUs the readings that they set. */
public final class TestDriver implements GpuProvider {
  /** The temperature of each GPU, in degrees Celsius. */
  static final Map<GpuId, Integer> CELSIUS = new ConcurrentHashMap<>();

  /** The GPUs whose memory is the host's. */
  static final Set<GpuId> SHARING = ConcurrentHashMap.newKeySet();

  private record Reading(GpuId gpu, int celsius) implements GpuReading {
    @Override
    public Map<String, String> properties() {
      return SHARING.contains(gpu) ? Map.of("memory", "the host's") : Map.of();
    }

    @Override
    public GpuHealth health() {
      return GpuHealth.HEALTHY;
    }

    @Override
    public String healthReason() {
      return "";
    }

    @Override
    public OptionalInt temperatureCelsius() {
      return OptionalInt.of(celsius);
    }

    @Override
    public OptionalInt busyPercent() {
      return OptionalInt.of(40);
    }
  }

  /** Called by the service loader. */
  public TestDriver() {}

  @Override
  public BackendStatus status() {
    return BackendStatus.ofAvailable("test");
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return List.of();
  }

  @Override
  public List<GpuReading> readings() {
    return CELSIUS.entrySet().stream()
        .<GpuReading>map(entry -> new Reading(entry.getKey(), entry.getValue()))
        .toList();
  }
}
