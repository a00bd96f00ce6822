package dev.vgpu.cli.watch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.watch.GpuEvent;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import java.io.ByteArrayOutputStream;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import org.junit.jupiter.api.Test;

/** The output of {@code devices} and {@code top} for GPUs that report readings. */
class DevicesCommandTest {
  private static final String PEER = "GPU-12345678-1234-1234-1234-123456789012";

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final GpuPool pool = Fakes.pool();

  private record Reading(GpuHealth health, String healthReason) implements GpuReading {
    @Override
    public GpuId gpu() {
      return new GpuId("GPU-1");
    }

    @Override
    public Optional<MemorySize> memoryTotal() {
      return Optional.of(MemorySize.ofGibibytes(16));
    }

    @Override
    public Optional<MemorySize> memoryUsed() {
      return Optional.of(MemorySize.ofGibibytes(3));
    }

    @Override
    public Optional<MemorySize> memoryReserved() {
      return Optional.of(MemorySize.ofGibibytes(1));
    }

    @Override
    public OptionalInt busyPercent() {
      return OptionalInt.of(87);
    }

    @Override
    public OptionalInt temperatureCelsius() {
      return OptionalInt.of(64);
    }

    @Override
    public OptionalDouble powerWatts() {
      return OptionalDouble.of(412.4);
    }

    @Override
    public OptionalDouble powerLimitWatts() {
      return OptionalDouble.of(700);
    }

    @Override
    public List<NvLink> nvLinks() {
      return List.of(
          new NvLink(0, true, Optional.of(PEER)),
          new NvLink(1, false, Optional.of(PEER)),
          new NvLink(2, true, Optional.of("switch")));
    }

    @Override
    public List<GpuProcess> processes() {
      return List.of(
          new GpuProcess(7, Optional.of(MemorySize.ofGibibytes(1)), OptionalInt.of(80)),
          new GpuProcess(8, Optional.empty(), OptionalInt.empty()));
    }

    @Override
    public Map<String, String> properties() {
      return Map.of(
          "driver_version", "580.65.06",
          "cuda_version", "13.0",
          "architecture", "Hopper",
          "compute_capability", "9.0",
          "pci", "00000000:01:00.0",
          "memory", "the host's",
          "mig_mode", "on",
          "compute_mode", "exclusive process");
    }
  }

  private int run(String... args) {
    return Fakes.commandLine(
            new CliContext(
                Fakes.console(out, err), Map.of(), options -> pool, new Fakes.SkippingClock()))
        .execute(args);
  }

  private List<String> lines() {
    return out.toString(UTF_8).lines().toList();
  }

  @Test
  void aGpuIsDescribedWithinEightyColumns() {
    when(pool.readings()).thenReturn(List.of(new Reading(GpuHealth.HEALTHY, "")));
    assertThat(run("devices")).isZero();
    assertThat(lines())
        .allMatch(line -> line.length() <= 80)
        .contains(
            "GPU-1  Test GPU (test)",
            "  3.0 GiB of 16.0 GiB used, 1.0 GiB reserved, 15.0 GiB for quotas, 0 leases",
            "  busy 87 %, 64 °C, 412 of 700 W",
            "  Hopper 9.0, driver 580.65.06, CUDA 13.0, PCI 00000000:01:00.0",
            "  NVLink 2 of 3 up: 1 to GPU-12345678, 1 to switch",
            "  memory: the host's, MIG on, compute mode exclusive process",
            "  2 processes");
  }

  @Test
  void whatIsWrongIsSaidFirst() {
    when(pool.readings()).thenReturn(List.of(new Reading(GpuHealth.LOST, "GPU is lost")));
    assertThat(run("devices")).isZero();
    assertThat(lines().get(1)).isEqualTo("  lost: GPU is lost");
    assertThat(out.toString(UTF_8)).doesNotContain("NVLink");
  }

  /** The seat's holder saw an event that cannot be read afterwards. */
  @Test
  void theSeatsHolderMayKnowMore() throws Exception {
    GpuState state = Fakes.state(1);
    when(state.health()).thenReturn(GpuHealth.DEGRADED);
    when(state.healthReason()).thenReturn("XID 95");
    when(pool.states()).thenReturn(List.of(state));
    when(pool.readings()).thenReturn(List.of(new Reading(GpuHealth.HEALTHY, "")));
    assertThat(run("devices", "--json")).isZero();
    JsonNode device = new ObjectMapper().readTree(out.toByteArray()).path("devices").path(0);
    assertThat(device.path("health").asText()).isEqualTo("degraded");
    assertThat(device.path("health_reason").asText()).isEqualTo("XID 95");
    assertThat(device.path("memory_used_bytes").asLong()).isEqualTo(3L << 30);
    assertThat(device.path("power_watts").asDouble()).isEqualTo(412.4);
    assertThat(device.path("temperature_celsius").asInt()).isEqualTo(64);
    assertThat(device.has("clock_mhz")).isFalse();
    assertThat(device.path("nvlinks").path(1).path("active").asBoolean()).isFalse();
    assertThat(device.path("nvlinks").path(0).path("peer").asText()).isEqualTo(PEER);
    assertThat(device.path("processes").path(0).path("memory_bytes").asLong()).isEqualTo(1L << 30);
    assertThat(device.path("processes").path(1).has("memory_bytes")).isFalse();
    assertThat(device.path("properties").path("mig_mode").asText()).isEqualTo("on");
  }

  @Test
  void topShowsTheDeviceAndWhatHappenedToIt() {
    Instant at = Instant.ofEpochSecond(1_800_000_000L);
    GpuId gpu = new GpuId("GPU-1");
    when(pool.readings()).thenReturn(List.of(new Reading(GpuHealth.DEGRADED, "XID 95")));
    when(pool.recentEvents())
        .thenReturn(List.of())
        .thenReturn(
            List.of(
                new GpuEvent.HealthChanged(at, "", gpu, GpuHealth.DEGRADED, "XID 95"),
                new GpuEvent.HealthChanged(at, "a-1", gpu, GpuHealth.LOST, "gone"),
                new GpuEvent.GpuFault(at, "", gpu, "XID 31")));
    assertThat(run("top", "--count=1")).isZero();
    assertThat(lines())
        .allMatch(line -> line.length() <= 80)
        .contains(
            "  degraded: XID 95", "  device busy 87 %, 64 °C, 412 of 700 W, 3.0 of 16.0 GiB used")
        .anyMatch(line -> line.endsWith("GPU-1 is degraded: XID 95"))
        .anyMatch(line -> line.endsWith("a-1 on GPU-1 is lost: gone"))
        .anyMatch(line -> line.endsWith("GPU-1 reported a fault: XID 31"));
  }
}
