package dev.vgpu.k8s.node.health;

import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuHealth;
import dev.vgpu.GpuId;
import dev.vgpu.GpuPool;
import dev.vgpu.GpuReading;
import dev.vgpu.GpuState;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A pool whose GPUs are read as a test says. */
public final class MockedGpus {
  public final GpuPool pool = mock(GpuPool.class);
  private final Map<GpuId, GpuReading> readings = new LinkedHashMap<>();
  private final Map<GpuId, GpuState> states = new LinkedHashMap<>();

  /** Creates it with these GPUs. */
  public MockedGpus(String... ids) {
    List<PhysicalGpu> gpus = new ArrayList<>();
    for (String each : ids) {
      GpuId id = new GpuId(each);
      PhysicalGpu gpu = mock(PhysicalGpu.class);
      when(gpu.id()).thenReturn(id);
      when(gpu.model()).thenReturn("NVIDIA H100");
      when(gpu.provider()).thenReturn("nvml");
      when(gpu.usableMemory()).thenReturn(MemorySize.ofGibibytes(80));
      when(gpu.unusableAsWhole()).thenReturn(Optional.empty());
      gpus.add(gpu);
      is(each, GpuHealth.HEALTHY);
      reads(each, Map.of());
    }
    when(pool.gpus()).thenReturn(gpus);
    when(pool.states()).thenAnswer(any -> List.copyOf(states.values()));
    when(pool.readings()).thenAnswer(any -> List.copyOf(readings.values()));
  }

  /** What the seat has been told. */
  public void is(String gpu, GpuHealth health) {
    GpuState state = mock(GpuState.class);
    when(state.gpu()).thenReturn(new GpuId(gpu));
    when(state.health()).thenReturn(health);
    when(state.healthReason()).thenReturn("");
    states.put(new GpuId(gpu), state);
  }

  /** What is read of a healthy GPU. */
  public void reads(String gpu, Map<String, String> properties, GpuReading.NvLink... links) {
    reads(gpu, GpuHealth.HEALTHY, properties, links);
  }

  /** What is read of a GPU. */
  public void reads(
      String gpu, GpuHealth health, Map<String, String> properties, GpuReading.NvLink... links) {
    GpuReading reading = mock(GpuReading.class);
    when(reading.gpu()).thenReturn(new GpuId(gpu));
    when(reading.health()).thenReturn(health);
    when(reading.healthReason()).thenReturn("");
    when(reading.properties()).thenReturn(properties);
    when(reading.nvLinks()).thenReturn(List.of(links));
    readings.put(new GpuId(gpu), reading);
  }
}
