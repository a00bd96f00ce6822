package dev.vgpu.cli.watch;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.mockito.ArgumentMatchers.any;
import static org.mockito.Mockito.verify;
import static org.mockito.Mockito.when;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.Fakes;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.UsageRecord;
import java.io.ByteArrayOutputStream;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class UsageCommandTest {
  /** The time on the tests' clock: 2027-01-15T08:00:01Z. */
  private static final Instant NOW = Instant.ofEpochSecond(1_800_000_001L);

  private record Used(
      String virtualGpu, List<GpuId> gpus, boolean isClosed, Duration gpuTime, double byteSeconds)
      implements UsageRecord {
    @Override
    public String name() {
      return virtualGpu.replaceFirst("-\\d+$", "");
    }

    @Override
    public Instant from() {
      return NOW.minusSeconds(600);
    }

    @Override
    public Instant to() {
      return NOW.minusSeconds(1);
    }

    @Override
    public Duration copyTime() {
      return virtualGpu.startsWith("copier") ? gpuTime.dividedBy(4) : Duration.ZERO;
    }

    @Override
    public long calls() {
      return 3;
    }

    @Override
    public long launches() {
      return 1000;
    }

    @Override
    public long preemptions() {
      return 7;
    }

    @Override
    public long deniedAllocations() {
      return 2;
    }
  }

  private static final GpuId ONE = new GpuId("GPU-1");
  private static final GpuId TWO = new GpuId("GPU-2");

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();
  private final GpuPool pool = Fakes.pool();

  @BeforeEach
  void records() {
    List<UsageRecord> records =
        List.of(
            new Used("model-1", List.of(ONE), true, Duration.ofMillis(1_500), 3L << 30),
            new Used("model-2", List.of(ONE), false, Duration.ofSeconds(75), 0),
            new Used("gang-3", List.of(ONE, TWO), false, Duration.ofHours(2), 2.0 * (7200L << 30)));
    when(pool.usageSince(any())).thenReturn(records);
  }

  @Test
  void showsWhatEachTenantUsed() {
    assertThat(run("usage")).isZero();
    verify(pool).usageSince(Instant.EPOCH);
    assertThat(out.toString(UTF_8).lines())
        .hasSize(4)
        .allMatch(line -> line.length() <= 80)
        .anyMatch(line -> line.matches("model-1 +1.500 s +3.0 GiB·s +1000 +3 +7 +2 +\\d.*:\\d\\d"))
        .anyMatch(line -> line.matches("model-2 +1:15 min +0.0 GiB·s .* now"))
        .anyMatch(line -> line.matches("gang-3 +2:00:00 h +4.00 GiB·h .*"));
  }

  @Test
  void timeOfTheCopyEnginesIsShownWhereThereIsSome() throws Exception {
    when(pool.usageSince(any()))
        .thenReturn(
            List.of(new Used("copier-1", List.of(ONE, TWO), true, Duration.ofSeconds(8), 0)));
    assertThat(run("usage")).isZero();
    assertThat(out.toString(UTF_8).lines())
        .anyMatch(line -> line.matches("tenant +gpu time +copies +memory .*"))
        .anyMatch(line -> line.matches("copier-1 +8.000 s +2.000 s +0.0 GiB·s .*"));
    out.reset();
    assertThat(run("usage", "--by", "gpu", "--json")).isZero();
    assertThat(json().path("usage").path(1).path("copy_seconds").asDouble()).isEqualTo(1);
  }

  @Test
  void sumsByNameAndByGpu() throws Exception {
    assertThat(run("usage", "--by", "name", "--json")).isZero();
    JsonNode usage = json().path("usage");
    assertThat(usage).hasSize(2);
    assertThat(usage.path(0).path("key").asText()).isEqualTo("model");
    assertThat(usage.path(0).path("gpu_seconds").asDouble()).isEqualTo(76.5);
    assertThat(usage.path(0).path("launches").asLong()).isEqualTo(2000);
    assertThat(usage.path(0).path("closed").asBoolean()).isFalse();
    out.reset();
    assertThat(run("usage", "--by=gpu", "--json")).isZero();
    usage = json().path("usage");
    assertThat(usage.path(0).path("gpu_seconds").asDouble()).isEqualTo(3676.5);
    assertThat(usage.path(1).path("key").asText()).isEqualTo("GPU-2");
    assertThat(usage.path(1).path("gpu_seconds").asDouble()).isEqualTo(3600);
  }

  private JsonNode json() throws Exception {
    return new ObjectMapper().readTree(out.toByteArray());
  }

  @ParameterizedTest
  @CsvSource({
    "1h, 2027-01-15T07:00:01Z",
    "90s, 2027-01-15T07:58:31Z",
    "2d, 2027-01-13T08:00:01Z",
    "2027-01-14T10:00Z, 2027-01-14T10:00:00Z",
    "2027-01-14T10:00+02:00, 2027-01-14T08:00:00Z"
  })
  void asksFromWhenOn(String text, Instant expected) {
    assertThat(run("usage", "--since", text)).isZero();
    verify(pool).usageSince(expected);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "--since=yesterday",
        "--since=2027-13-01",
        "--since=2028-01-01",
        "--since=-1h",
        "--by=colour"
      })
  void nonsenseIsWrongUsage(String argument) {
    assertThat(run("usage", argument)).isEqualTo(2);
    assertThat(err.toString(UTF_8)).contains("vgpu usage --help");
  }

  @Test
  void nothingUsedSaysSo() {
    when(pool.usageSince(any())).thenReturn(List.of());
    assertThat(run("usage", "--since", "1h")).isZero();
    assertThat(out.toString(UTF_8)).contains("No virtual GPU was used then.");
  }

  private int run(String... args) {
    return Fakes.commandLine(
            new CliContext(
                Fakes.console(out, err), Map.of(), options -> pool, new Fakes.SkippingClock()))
        .execute(args);
  }
}
