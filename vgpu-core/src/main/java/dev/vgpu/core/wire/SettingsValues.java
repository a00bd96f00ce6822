package dev.vgpu.core.wire;

import dev.vgpu.GpuSettings;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;

/** Encodes and decodes the settings of a GPU. */
public final class SettingsValues {
  private SettingsValues() {}

  /**
   * {@return the values of settings}
   *
   * @param settings the settings
   */
  public static Map<String, String> of(GpuSettings settings) {
    Map<String, String> values = new LinkedHashMap<>();
    values.put("sharing", settings.sharing().name());
    values.put("shortestTurnNs", ns(settings.shortestTurn()));
    values.put("longestTurnNs", ns(settings.longestTurn()));
    values.put("idleLingerNs", ns(settings.idleLinger()));
    values.put("offlineFloor", "" + settings.offlineFloorPercent());
    values.put("oversubscription", "" + settings.memoryOversubscriptionPercent());
    values.put("lowWatermark", "" + settings.memoryLowWatermarkPercent());
    values.put("highWatermark", "" + settings.memoryHighWatermarkPercent());
    values.put("forecastNs", ns(settings.memoryForecast()));
    values.put("askNs", ns(settings.reclaimAskTimeout()));
    values.put("suspendNs", ns(settings.reclaimSuspendTimeout()));
    values.put("endNs", ns(settings.reclaimEndTimeout()));
    values.put("holdBackNs", ns(settings.reclaimHoldBack()));
    return values;
  }

  /**
   * {@return the settings described by values}
   *
   * @param values values from {@link #of}
   * @throws MalformedMessageException if they do not describe settings
   */
  public static GpuSettings settings(Map<String, String> values) {
    try {
      return GpuSettings.builder()
          .sharing(GpuSettings.Sharing.valueOf(RequestValues.need(values, "sharing")))
          .shortestTurn(duration(values, "shortestTurnNs"))
          .longestTurn(duration(values, "longestTurnNs"))
          .idleLinger(duration(values, "idleLingerNs"))
          .offlineFloorPercent(number(values, "offlineFloor"))
          .memoryOversubscriptionPercent(number(values, "oversubscription"))
          .memoryWatermarks(number(values, "lowWatermark"), number(values, "highWatermark"))
          .memoryForecast(duration(values, "forecastNs"))
          .reclaimAskTimeout(duration(values, "askNs"))
          .reclaimSuspendTimeout(duration(values, "suspendNs"))
          .reclaimEndTimeout(duration(values, "endNs"))
          .reclaimHoldBack(duration(values, "holdBackNs"))
          .build();
    } catch (IllegalArgumentException e) {
      throw new MalformedMessageException("not a GPU's settings: " + e.getMessage(), e);
    }
  }

  private static String ns(Duration duration) {
    return Long.toString(duration.toNanos());
  }

  private static Duration duration(Map<String, String> values, String name) {
    return Duration.ofNanos(Long.parseLong(RequestValues.need(values, name)));
  }

  private static int number(Map<String, String> values, String name) {
    return Integer.parseInt(RequestValues.need(values, name));
  }
}
