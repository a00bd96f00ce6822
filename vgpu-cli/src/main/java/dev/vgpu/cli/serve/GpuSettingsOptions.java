package dev.vgpu.cli.serve;

import dev.vgpu.GpuSettings;
import dev.vgpu.cli.text.Words;
import java.time.Duration;
import java.util.Map;
import java.util.function.Consumer;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** The options that say how GPUs are shared. Mutable; picocli sets them. */
final class GpuSettingsOptions {
  private static final Pattern SETTING = Pattern.compile("(\\w+)=");
  private static final Pattern ISO_TIME = Pattern.compile("PT[0-9.HMS]*[HMS]");

  /** The options of the settings, by the names that the library's messages have for them. */
  private static final Map<String, String> OPTIONS =
      Map.ofEntries(
          Map.entry("shortestTurn", "--shortest-turn"),
          Map.entry("longestTurn", "--longest-turn"),
          Map.entry("idleLinger", "--idle-linger"),
          Map.entry("offlineFloorPercent", "--offline-floor"),
          Map.entry("memoryOversubscriptionPercent", "--oversubscribe"),
          Map.entry("lowPercent", "--memory-low"),
          Map.entry("highPercent", "--memory-high"),
          Map.entry("memoryForecast", "--memory-forecast"),
          Map.entry("reclaimAskTimeout", "--reclaim-ask"),
          Map.entry("reclaimSuspendTimeout", "--reclaim-suspend"),
          Map.entry("reclaimEndTimeout", "--reclaim-end"),
          Map.entry("reclaimHoldBack", "--reclaim-hold-back"));

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec(Spec.Target.MIXEE)
  private CommandSpec spec;

  @Option(
      names = "--sharing",
      paramLabel = "auto|strict",
      description =
          "auto (the default): tenants use a GPU together where their policies allow it; strict:"
              + " always one at a time.")
  private GpuSettings.@Nullable Sharing sharing;

  @Option(
      names = "--shortest-turn",
      paramLabel = "DURATION",
      description = "How long a tenant keeps a GPU at least while others wait. Default: 2ms.")
  private @Nullable Duration shortestTurn;

  @Option(
      names = "--longest-turn",
      paramLabel = "DURATION",
      description = "How long at most. Default: 50ms.")
  private @Nullable Duration longestTurn;

  @Option(
      names = "--idle-linger",
      paramLabel = "DURATION",
      description = "How long an idle tenant keeps its turn. Default: 100us.")
  private @Nullable Duration idleLinger;

  @Option(
      names = "--offline-floor",
      paramLabel = "PERCENT",
      description = "The least part of a GPU that offline tenants get, 0 to 100. Default: 0.")
  private @Nullable Integer offlineFloor;

  @Option(
      names = "--oversubscribe",
      paramLabel = "PERCENT",
      description =
          "How much of a GPU's memory all quotas may take together, 100 to 1000. Above 100, offline"
              + " and nearline tenants may be asked to free memory, suspended or ended. Default:"
              + " 100.")
  private @Nullable Integer oversubscribe;

  @Option(
      names = "--memory-low",
      paramLabel = "PERCENT",
      description =
          "Reclaim memory when less than this part of it is free; 0: never. With --memory-high."
              + " Default: 0, or 5 with --oversubscribe.")
  private @Nullable Integer memoryLow;

  @Option(
      names = "--memory-high",
      paramLabel = "PERCENT",
      description =
          "Reclaim until this part of it is free. Default: 0, or 10 with --oversubscribe.")
  private @Nullable Integer memoryHigh;

  @Option(
      names = "--memory-forecast",
      paramLabel = "DURATION",
      description = "How far ahead the growth of the memory in use is looked at. Default: 1s.")
  private @Nullable Duration memoryForecast;

  @Option(
      names = "--reclaim-ask",
      paramLabel = "DURATION",
      description = "How long a tenant that is asked to free memory may take. Default: 2s.")
  private @Nullable Duration reclaimAsk;

  @Option(
      names = "--reclaim-suspend",
      paramLabel = "DURATION",
      description = "How long it may take to suspend a tenant; 0s: never suspend. Default: 5s.")
  private @Nullable Duration reclaimSuspend;

  @Option(
      names = "--reclaim-end",
      paramLabel = "DURATION",
      description = "How long programs may take from SIGTERM until SIGKILL. Default: 5s.")
  private @Nullable Duration reclaimEnd;

  @Option(
      names = "--reclaim-hold-back",
      paramLabel = "DURATION",
      description =
          "How long memory must have been free again before tenants may come back. Default: 10s.")
  private @Nullable Duration reclaimHoldBack;

  /**
   * {@return the settings, with defaults for options that were not given}
   *
   * @throws ParameterException if the settings are not valid
   */
  GpuSettings settings() {
    GpuSettings.Builder builder = GpuSettings.builder();
    try {
      set(sharing, builder::sharing);
      set(shortestTurn, builder::shortestTurn);
      set(longestTurn, builder::longestTurn);
      set(idleLinger, builder::idleLinger);
      set(offlineFloor, builder::offlineFloorPercent);
      set(oversubscribe, builder::memoryOversubscriptionPercent);
      set(memoryForecast, builder::memoryForecast);
      set(reclaimAsk, builder::reclaimAskTimeout);
      set(reclaimSuspend, builder::reclaimSuspendTimeout);
      set(reclaimEnd, builder::reclaimEndTimeout);
      set(reclaimHoldBack, builder::reclaimHoldBack);
      if (memoryLow != null && memoryHigh != null) {
        builder.memoryWatermarks(memoryLow, memoryHigh);
      } else if (memoryLow != null || memoryHigh != null) {
        throw new IllegalArgumentException(
            "--memory-low and --memory-high belong together: give both");
      }
      return builder.build();
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), inOptions(e), e);
    }
  }

  /** {@return a message of the library, with options for its settings, and times as options'} */
  private static String inOptions(IllegalArgumentException e) {
    String named =
        SETTING
            .matcher(String.valueOf(e.getMessage()))
            .replaceAll(found -> OPTIONS.getOrDefault(found.group(1), found.group(1)) + "=");
    return ISO_TIME.matcher(named).replaceAll(found -> Words.of(Duration.parse(found.group())));
  }

  private static <T> void set(@Nullable T given, Consumer<T> setter) {
    if (given != null) {
      setter.accept(given);
    }
  }
}
