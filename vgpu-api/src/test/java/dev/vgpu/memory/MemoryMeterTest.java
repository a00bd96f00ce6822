package dev.vgpu.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuUsage;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class MemoryMeterTest {
  @TempDir Path directory;

  private ResidentMemoryMeter resident(String status) throws IOException {
    Files.writeString(directory.resolve("status"), status);
    return new ResidentMemoryMeter(directory.resolve("status"), directory.resolve("clear_refs"));
  }

  @Test
  void peakIsWhatTheProcessHeldMoreThanAtTheBeginning() throws IOException {
    ResidentMemoryMeter meter = resident("VmHWM:\t    900 kB\nVmRSS:\t    100 kB\n");
    meter.begin();
    assertThat(directory.resolve("clear_refs")).hasContent("5");
    assertThat(meter.peakBytes()).isEqualTo(800 * 1024);
  }

  @Test
  void withoutABeginningOrThatFileNothingIsMeasured() throws IOException {
    assertThat(resident("VmHWM:\t    900 kB\n").peakBytes()).isZero();
    MemoryMeter meter = new ResidentMemoryMeter(directory, directory.resolve("no/clear_refs"));
    meter.begin();
    assertThat(meter.peakBytes()).isZero();
  }

  @Test
  void aPeakBelowTheBeginningCountsAsNone() throws IOException {
    ResidentMemoryMeter meter = resident("VmRSS:\t    100 kB\nVmHWM:\t    60 kB\n");
    meter.begin();
    assertThat(meter.peakBytes()).isZero();
  }

  @Test
  void nothingCountsTheMemoryOfAJvmThatIsNotAttached() {
    VirtualGpu gpu = mock(VirtualGpu.class);
    GpuUsage usage = mock(GpuUsage.class);
    when(gpu.usage()).thenReturn(usage);
    when(usage.memoryUsed()).thenReturn(MemorySize.ZERO);
    assertThat(MemoryMeter.ofAttached(gpu).peakBytes()).isNegative();
  }

  @Test
  void attachedMemoryIsCountedFromTheLoadedModelOn() {
    VirtualGpu gpu = mock(VirtualGpu.class);
    GpuUsage usage = mock(GpuUsage.class);
    when(gpu.usage()).thenReturn(usage);
    when(usage.memoryUsed()).thenReturn(MemorySize.ofBytes(100));
    MemoryMeter meter = MemoryMeter.ofAttached(gpu);
    when(usage.memoryUsed()).thenReturn(MemorySize.ofBytes(250));
    assertThat(meter.peakBytes()).isEqualTo(150);
    meter.loaded();
    assertThat(meter.peakBytes()).isZero();
    when(usage.memoryUsed()).thenReturn(MemorySize.ofBytes(260));
    assertThat(meter.peakBytes()).isEqualTo(10);
  }
}
