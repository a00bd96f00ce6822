package dev.vgpu.k8s.node.health;

import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.GpuPool;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** A pool whose GPUs are read as a test says. */
public final class MockedGpus {
  public final GpuPool pool = mock(GpuPool.class);
  private final Map<GpuId, PhysicalGpu> all = new LinkedHashMap<>();
  private final Map<GpuId, GpuReading> readings = new LinkedHashMap<>();
  private final Map<GpuId, GpuState> states = new LinkedHashMap<>();

  /** Creates it with these GPUs. */
  public MockedGpus(String... ids) {
    for (String each : ids) {
      GpuId id = new GpuId(each);
      PhysicalGpu gpu = mock(PhysicalGpu.class);
      when(gpu.id()).thenReturn(id);
      when(gpu.model()).thenReturn("NVIDIA H100");
      when(gpu.provider()).thenReturn("nvml");
      when(gpu.usableMemory()).thenReturn(MemorySize.ofGibibytes(80));
      when(gpu.unusableAsWhole()).thenReturn(Optional.empty());
      all.put(id, gpu);
      is(each, GpuHealth.HEALTHY);
      reads(each, Map.of());
    }
    when(pool.gpus()).thenReturn(List.copyOf(all.values()));
    when(pool.states()).thenAnswer(any -> List.copyOf(states.values()));
    when(pool.readings()).thenAnswer(any -> List.copyOf(readings.values()));
  }

  /** Its MIG mode was on when it was found, and it can be divided into these parts. */
  public void isDivided(String gpu, List<GpuPart> parts) {
    GpuId id = new GpuId(gpu);
    when(all.get(id).unusableAsWhole()).thenReturn(Optional.of("its MIG mode is on"));
    when(pool.parts(id)).thenReturn(parts);
    reads(gpu, Map.of("mig_mode", "on"));
  }

  /** {@return the parts of an A100 of 40 GB} */
  public static List<GpuPart> partsOfA100() {
    List<GpuPart> parts = new ArrayList<>();
    add(parts, "1g.5gb", 1, 1, 14, 0, 1, 2, 3, 4, 5, 6);
    add(parts, "1g.5gb+me", 1, 1, 14, 0, 1, 2, 3, 4, 5, 6);
    add(parts, "1g.10gb", 1, 2, 14, 0, 2, 4, 6);
    add(parts, "2g.10gb", 2, 2, 28, 0, 2, 4);
    add(parts, "3g.20gb", 3, 4, 42, 0, 4);
    add(parts, "4g.20gb", 4, 4, 56, 0);
    add(parts, "7g.40gb", 7, 8, 98, 0);
    return parts;
  }

  private static void add(
      List<GpuPart> parts, String profile, int compute, int slices, int sms, int... starts) {
    for (int start : starts) {
      parts.add(
          new GpuPart(
              profile, start, slices, compute, MemorySize.ofMebibytes(4864L * slices), sms));
    }
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
