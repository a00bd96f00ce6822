package dev.vgpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import dev.vgpu.GpuPoolOptions.LeakTracking;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class GpuPoolOptionsTest {
  private static final Duration LONGEST = Duration.ofSeconds(10);
  private static final Duration SHORTEST = Duration.ofNanos(1);

  private final GpuPoolOptions.Builder builder = GpuPoolOptions.builder();

  private record Gpu(GpuId id, String model) implements PhysicalGpu {
    @Override
    public MemorySize memory() {
      return MemorySize.ofGibibytes(1);
    }

    @Override
    public MemorySize usableMemory() {
      return memory();
    }

    @Override
    public String provider() {
      return "test";
    }
  }

  private static Gpu gpu(String id, String model) {
    return new Gpu(new GpuId(id), model);
  }

  @Test
  void defaultsAreTheDocumentedOnes() {
    GpuPoolOptions options = GpuPoolOptions.defaults();
    assertThat(options.gpus()).isEmpty();
    assertThat(options.offlineFloorPercent()).isZero();
    assertThat(options.turnLength()).isEqualTo(Duration.ofMillis(2));
    assertThat(options.idleLinger()).isEqualTo(Duration.ofNanos(100_000));
    assertThat(options.leakTracking()).isEqualTo(LeakTracking.OFF);
    assertThat(builder.build()).usingRecursiveComparison().isEqualTo(options);
  }

  @ParameterizedTest
  @ValueSource(ints = {-1, 101})
  void floorOutOfRangeIsRefused(int percent) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.offlineFloorPercent(percent))
        .withMessageContaining("offlineFloorPercent=" + percent);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 100})
  void floorAtTheBoundsIsTaken(int percent) {
    assertThat(builder.offlineFloorPercent(percent).build().offlineFloorPercent())
        .isEqualTo(percent);
  }

  @Test
  void turnLengthIsAboveZeroAndAtMostTenSeconds() {
    assertThat(builder.turnLength(SHORTEST).build().turnLength()).isEqualTo(SHORTEST);
    assertThat(builder.turnLength(LONGEST).build().turnLength()).isEqualTo(LONGEST);
    assertThatIllegalArgumentException().isThrownBy(() -> builder.turnLength(Duration.ZERO));
    for (Duration bad : List.of(SHORTEST.negated(), LONGEST.plus(SHORTEST))) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> builder.turnLength(bad))
          .withMessageContaining("turnLength=" + bad);
    }
  }

  @Test
  void lingerIsAtLeastZeroAndAtMostTenSeconds() {
    assertThat(builder.idleLinger(Duration.ZERO).build().idleLinger()).isZero();
    assertThat(builder.idleLinger(LONGEST).build().idleLinger()).isEqualTo(LONGEST);
    for (Duration bad : List.of(SHORTEST.negated(), LONGEST.plus(SHORTEST))) {
      assertThatIllegalArgumentException()
          .isThrownBy(() -> builder.idleLinger(bad))
          .withMessageContaining("idleLinger=" + bad);
    }
  }

  @Test
  void gpusOfOneNameAreRefused() {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.gpus(List.of(gpu("a", "x"), gpu("b", "x"), gpu("a", "y"))))
        .withMessageContaining("[a, b, a]");
    List<Gpu> two = List.of(gpu("a", "x"), gpu("b", "x"));
    assertThat(builder.gpus(two).build().gpus()).hasValue(List.copyOf(two));
  }

  @Test
  void listOfNoGpuIsRefused() {
    assertThatIllegalArgumentException().isThrownBy(() -> builder.gpus(List.of()));
  }

  @Test
  void gpusAreCopied() {
    List<Gpu> gpus = new ArrayList<>(List.of(gpu("a", "x")));
    GpuPoolOptions options = builder.gpus(gpus).build();
    gpus.clear();
    assertThat(options.gpus().orElseThrow()).hasSize(1).isUnmodifiable();
  }

  @Test
  void absentValuesAreRefused() {
    assertThatNullPointerException().isThrownBy(() -> builder.gpus(null)).withMessage("gpus");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.turnLength(null))
        .withMessage("turnLength");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.idleLinger(null))
        .withMessage("idleLinger");
    assertThatNullPointerException()
        .isThrownBy(() -> builder.leakTracking(null))
        .withMessage("leakTracking");
    assertThat(builder.leakTracking(LeakTracking.CREATION_SITE).build().leakTracking())
        .isEqualTo(LeakTracking.CREATION_SITE);
  }
}
