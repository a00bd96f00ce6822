package dev.vgpu.core.discovery;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

class HostGpuTest {
  @Test
  void availableMemoryIsReadFromMeminfo() {
    List<String> lines =
        List.of("MemTotal:       24684092 kB", "MemAvailable:   24124860 kB", "Buffers: 1 kB");
    assertThat(HostGpu.availableBytes(lines, 5)).isEqualTo(24124860L * 1024);
  }

  @Test
  void unreadableMeminfoGivesTheFallback() {
    for (String line : List.of("", "MemAvailable:", "MemAvailable: x kB", "MemAvailable: -1 kB")) {
      assertThat(HostGpu.availableBytes(List.of(line), 5)).isEqualTo(5);
    }
  }

  @Test
  void modelNameIsReadFromCpuinfo() {
    assertThat(HostGpu.modelName(List.of("processor : 0", "model name\t: AMD EPYC", "x: y")))
        .isEqualTo("AMD EPYC");
    assertThat(HostGpu.modelName(List.of("processor : 0"))).isEqualTo("CPU");
  }
}
