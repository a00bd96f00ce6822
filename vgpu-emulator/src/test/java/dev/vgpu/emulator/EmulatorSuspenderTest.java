package dev.vgpu.emulator;

import static org.assertj.core.api.Assertions.assertThat;

import dev.vgpu.GpuId;
import dev.vgpu.MemorySize;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.spi.ProcessSuspender;
import java.util.ServiceLoader;
import org.junit.jupiter.api.Test;

class EmulatorSuspenderTest {
  private record Gpu(GpuId id, String provider) implements PhysicalGpu {
    @Override
    public String model() {
      return "any";
    }

    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(1);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }
  }

  @Test
  void isFoundAndServesEmulatedGpusOnly() {
    ProcessSuspender found = ServiceLoader.load(ProcessSuspender.class).findFirst().orElseThrow();
    assertThat(found).isInstanceOf(EmulatorSuspender.class);
    assertThat(found.serves(new Gpu(new GpuId("GPU-1"), "emulator"))).isTrue();
    assertThat(found.serves(new Gpu(new GpuId("GPU-1"), "nvml"))).isFalse();
  }
}
