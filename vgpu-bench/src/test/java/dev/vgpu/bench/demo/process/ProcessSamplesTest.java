package dev.vgpu.bench.demo.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuUsage;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;

class ProcessSamplesTest {
  private final ProcessSamples samples = new ProcessSamples();

  private void add(long atNs, long gpuTimeNs, long memory) {
    GpuUsage usage = mock(GpuUsage.class);
    when(usage.gpuTime()).thenReturn(Duration.ofNanos(gpuTimeNs));
    when(usage.memoryUsed()).thenReturn(MemorySize.ofBytes(memory));
    samples.add(atNs, usage);
  }

  @Test
  void heldIsGpuTimeOverTimeAndEvenBetweenSamples() {
    add(1000, 0, 5);
    add(2000, 500, 9);
    add(3000, 500, 7);
    assertThat(samples.heldPercent(1000, 2000)).isEqualTo(50, within(1e-9));
    assertThat(samples.heldPercent(1000, 3000)).isEqualTo(25, within(1e-9));
    assertThat(samples.heldPercent(1500, 2500)).isEqualTo(25, within(1e-9));
    assertThat(samples.heldPercent(0, 2000)).isEqualTo(25, within(1e-9));
    assertThat(samples.memoryPeakBytes()).isEqualTo(9);
  }

  @Test
  void nothingIsHeldWhereNothingWasSampled() {
    assertThat(samples.heldPercent(0, 1)).isNaN();
    add(1000, 0, 0);
    add(2000, 500, 0);
    assertThat(samples.heldPercent(2001, 3000)).isNaN();
    assertThat(samples.heldPercent(1500, 1500)).isNaN();
  }

  @Test
  void textSaysWhatWasMeasuredAndThatTheMachineWasBusy() throws Exception {
    String json =
        """
        {"tenants": [{"name": "fixed-50", "class": "OFFLINE", "asked_percent": 50,
          "held_three_percent": 49.96, "held_together_percent": null, "preemptions": 3,
          "memory_peak_bytes": 1048576, "memory_quota_bytes": 2097152}],
         "online_alone": {"work_ms": 5, "latency_ms": {"p50": 5.1, "p99": 6.2}},
         "online_beside": {"latency_ms": {"p50": 6.1, "p99": 7.2}},
         "hoard": {"bytes": 805306368, "quota_bytes": 1073741824,
          "refusal": "CUDA_ERROR_OUT_OF_MEMORY"},
         "machine_was_busy": true, "other_programs_cpu_percent": 80}
        """;
    List<String> lines = new ProcessesText(new ObjectMapper().readTree(json)).lines();
    assertThat(lines)
        .anyMatch(line -> line.matches("fixed-50 \\(offline\\) .*50 % +50.0 % +- +1/2 +3"))
        .contains("programs, one emulated device, ")
        .anyMatch(line -> line.contains("5.1 ms (p50) and 6.2 ms (p99) alone, and 6.1 and 7.2 ms"))
        .anyMatch(line -> line.contains("768.0 MiB of its quota of 1024 MiB"))
        .anyMatch(line -> line.startsWith("BUT this machine was busy") && line.contains("80 %"));
    assertThat(lines.stream().takeWhile(line -> !line.isEmpty()))
        .allMatch(line -> line.length() <= 80);
  }
}
