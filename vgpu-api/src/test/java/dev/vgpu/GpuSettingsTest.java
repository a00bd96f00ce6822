package dev.vgpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatNullPointerException;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class GpuSettingsTest {
  private static final Duration LONGEST = Duration.ofSeconds(10);
  private static final Duration LONGEST_STEP = Duration.ofMinutes(10);
  private static final Duration SHORTEST = Duration.ofNanos(1);

  private final GpuSettings.Builder builder = GpuSettings.builder();

  @Test
  void defaultsAreTheDocumentedOnes() {
    GpuSettings settings = GpuSettings.defaults();
    assertThat(settings.sharing()).isEqualTo(GpuSettings.Sharing.AUTO);
    assertThat(settings.shortestTurn()).isEqualTo(Duration.ofMillis(2));
    assertThat(settings.longestTurn()).isEqualTo(Duration.ofMillis(50));
    assertThat(settings.idleLinger()).isEqualTo(Duration.ofNanos(100_000));
    assertThat(settings.offlineFloorPercent()).isZero();
    assertThat(settings.memoryOversubscriptionPercent()).isEqualTo(100);
    assertThat(settings.memoryLowWatermarkPercent()).isZero();
    assertThat(settings.memoryHighWatermarkPercent()).isZero();
    assertThat(settings.memoryForecast()).isEqualTo(Duration.ofSeconds(1));
    assertThat(settings.reclaimAskTimeout()).isEqualTo(Duration.ofSeconds(2));
    assertThat(settings.reclaimSuspendTimeout()).isEqualTo(Duration.ofSeconds(5));
    assertThat(settings.reclaimEndTimeout()).isEqualTo(Duration.ofSeconds(5));
    assertThat(settings.reclaimHoldBack()).isEqualTo(Duration.ofSeconds(10));
    assertThat(builder.build()).isEqualTo(settings).hasSameHashCodeAs(settings);
    assertThat(builder.offlineFloorPercent(1).build()).isNotEqualTo(settings);
  }

  @Test
  void oversubscribedMemoryHasWatermarks() {
    GpuSettings settings = builder.memoryOversubscriptionPercent(150).build();
    assertThat(settings.memoryLowWatermarkPercent()).isEqualTo(5);
    assertThat(settings.memoryHighWatermarkPercent()).isEqualTo(10);
    assertThat(builder.memoryWatermarks(0, 0).build().memoryLowWatermarkPercent()).isZero();
  }

  @ParameterizedTest
  @CsvSource({"20,10,low watermark is above", "-1,5,lowPercent=-1", "5,101,highPercent=101"})
  void watermarksThatCrossOrAreOutOfRangeAreRefused(int low, int high, String message) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.memoryWatermarks(low, high))
        .withMessageContaining(message);
  }

  @Test
  void shortestTurnAboveTheLongestIsRefused() {
    builder.shortestTurn(Duration.ofMillis(60));
    assertThatIllegalArgumentException()
        .isThrownBy(builder::build)
        .withMessageContaining("shortestTurn=PT0.06S longestTurn=PT0.05S");
    assertThat(builder.longestTurn(Duration.ofMillis(60)).build().longestTurn())
        .isEqualTo(Duration.ofMillis(60));
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

  @ParameterizedTest
  @ValueSource(ints = {99, 0, -5, 1001})
  void oversubscriptionOutOfRangeIsRefused(int percent) {
    assertThatIllegalArgumentException()
        .isThrownBy(() -> builder.memoryOversubscriptionPercent(percent))
        .withMessageContaining("memoryOversubscriptionPercent=" + percent);
  }

  @Test
  void turnsAreAboveZeroAndAtMostTenSeconds() {
    Map<String, BiFunction<GpuSettings.Builder, Duration, GpuSettings.Builder>> setters =
        Map.of(
            "shortestTurn", GpuSettings.Builder::shortestTurn,
            "longestTurn", GpuSettings.Builder::longestTurn);
    setters.forEach(
        (name, setter) -> {
          for (Duration bad : List.of(Duration.ZERO, SHORTEST.negated(), LONGEST.plus(SHORTEST))) {
            assertThatIllegalArgumentException()
                .isThrownBy(() -> setter.apply(builder, bad))
                .withMessageContaining(name + "=" + bad);
          }
          assertThatNullPointerException()
              .isThrownBy(() -> setter.apply(builder, null))
              .withMessage(name);
        });
    GpuSettings settings = builder.longestTurn(LONGEST).shortestTurn(SHORTEST).build();
    assertThat(settings.shortestTurn()).isEqualTo(SHORTEST);
    assertThat(settings.longestTurn()).isEqualTo(LONGEST);
  }

  @Test
  void otherDurationsAreAtLeastZeroAndHaveABound() {
    Map<String, BiFunction<GpuSettings.Builder, Duration, GpuSettings.Builder>> setters =
        Map.of(
            "idleLinger", GpuSettings.Builder::idleLinger,
            "memoryForecast", GpuSettings.Builder::memoryForecast,
            "reclaimAskTimeout", GpuSettings.Builder::reclaimAskTimeout,
            "reclaimSuspendTimeout", GpuSettings.Builder::reclaimSuspendTimeout,
            "reclaimEndTimeout", GpuSettings.Builder::reclaimEndTimeout,
            "reclaimHoldBack", GpuSettings.Builder::reclaimHoldBack);
    setters.forEach(
        (name, setter) -> {
          Duration most = name.startsWith("reclaim") ? LONGEST_STEP : LONGEST;
          for (Duration bad : List.of(SHORTEST.negated(), most.plus(SHORTEST))) {
            assertThatIllegalArgumentException()
                .isThrownBy(() -> setter.apply(builder, bad))
                .withMessageContaining(name + "=" + bad);
          }
          assertThat(setter.apply(builder, most).build().toString()).contains(name + "=" + most);
          assertThat(setter.apply(builder, Duration.ZERO).build().toString())
              .contains(name + "=PT0S");
        });
  }
}
