package dev.vgpu.core.seat;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.vgpu.GpuPool;
import dev.vgpu.GpuPoolOptions;
import dev.vgpu.GpuSettings;
import dev.vgpu.core.book.PoolSettings;
import dev.vgpu.core.pool.Pools;
import dev.vgpu.core.wire.MalformedMessageException;
import dev.vgpu.core.wire.Message;
import dev.vgpu.core.wire.SettingsValues;
import dev.vgpu.request.GpuId;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

class PoolSettingsTest {
  private static final GpuSettings ALL =
      GpuSettings.builder()
          .sharing(GpuSettings.Sharing.STRICT)
          .shortestTurn(Duration.ofMillis(3))
          .longestTurn(Duration.ofMillis(4))
          .idleLinger(Duration.ofMillis(5))
          .offlineFloorPercent(6)
          .memoryOversubscriptionPercent(170)
          .memoryWatermarks(8, 9)
          .memoryForecast(Duration.ofMillis(10))
          .reclaimAskTimeout(Duration.ofMillis(11))
          .reclaimSuspendTimeout(Duration.ofMillis(12))
          .reclaimEndTimeout(Duration.ofMillis(13))
          .reclaimHoldBack(Duration.ofMillis(14))
          .build();

  @Test
  void clientsAreToldWhatTheSeatGoesBy() {
    PoolSettings settings =
        new PoolSettings(
            ALL,
            Map.of(
                new GpuId("a"), GpuSettings.defaults(),
                new GpuId("b"), GpuSettings.builder().offlineFloorPercent(1).build()));
    Message message = Protocol.settings(new Message("reply"), settings);
    assertThat(Protocol.settings(message)).isEqualTo(settings);
    assertThat(settings.of(new GpuId("a"))).isEqualTo(GpuSettings.defaults());
    assertThat(settings.of(new GpuId("c"))).isEqualTo(ALL);
  }

  @Test
  void settingsThatMakeNoSenseAreMalformed() {
    Map<String, String> values = new HashMap<>(SettingsValues.of(ALL));
    assertThat(SettingsValues.settings(values)).isEqualTo(ALL);
    values.put("lowWatermark", "10");
    assertThatThrownBy(() -> SettingsValues.settings(values))
        .isInstanceOf(MalformedMessageException.class)
        .hasMessageContaining("lowPercent=10 highPercent=9");
  }

  @Test
  void settingsOfAGpuThatIsNotThereAreRefused() {
    GpuPoolOptions options =
        GpuPoolOptions.builder()
            .scope(GpuPoolOptions.Scope.THIS_JVM)
            .gpus(Pools.gpus(1))
            .gpuSettings(new GpuId("elsewhere"), ALL)
            .build();
    assertThatIllegalArgumentException()
        .isThrownBy(() -> GpuPool.open(options))
        .withMessageContaining("not in this pool: gpu=elsewhere");
  }
}
