package dev.vgpu.cli;

import dev.vgpu.FailureMode;
import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.SharingMode;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import picocli.CommandLine.TypeConversionException;

/** The words for policies, classes, sizes and durations, on the command line and in tables. */
final class Words {
  private static final Pattern DURATION = Pattern.compile("(\\d{1,9})(us|ms|s|m|h)");

  private Words() {}

  static MemorySize memorySize(String text) {
    try {
      return MemorySize.fromString(text);
    } catch (IllegalArgumentException e) {
      throw new TypeConversionException(e.getMessage());
    }
  }

  static Duration duration(String text) {
    Matcher matcher = DURATION.matcher(text.strip().toLowerCase(Locale.ROOT));
    if (matcher.matches()) {
      long amount = Long.parseLong(matcher.group(1));
      return switch (matcher.group(2)) {
        case "us" -> Duration.ofNanos(1_000 * amount);
        case "ms" -> Duration.ofMillis(amount);
        case "s" -> Duration.ofSeconds(amount);
        case "m" -> Duration.ofMinutes(amount);
        default -> Duration.ofHours(amount);
      };
    }
    try {
      Duration duration = Duration.parse(text.strip());
      if (!duration.isNegative()) {
        return duration;
      }
    } catch (DateTimeParseException e) {
      // Said below.
    }
    throw new TypeConversionException(
        "not a duration: '" + text + "' (write for example 500ms, 10s or 2m)");
  }

  static SharePolicy policy(String text) {
    return parse(text, "policy", List.of(SharePolicy.values()), Words::of);
  }

  static PreemptionClass preemptionClass(String text) {
    return parse(text, "class", List.of(PreemptionClass.values()), Words::of);
  }

  static FailureMode failureMode(String text) {
    return parse(
        text,
        "choice",
        List.of(FailureMode.values()),
        mode -> mode.name().toLowerCase(Locale.ROOT));
  }

  static String of(SharePolicy policy) {
    return switch (policy) {
      case BEST_EFFORT -> "best-effort";
      case FIXED_SHARE -> "fixed";
      case BURST_SHARE -> "burst";
    };
  }

  static String of(PreemptionClass preemptionClass) {
    return preemptionClass.name().toLowerCase(Locale.ROOT);
  }

  static String of(SharingMode mode) {
    return mode.name().toLowerCase(Locale.ROOT);
  }

  /** A size for people, at most six characters and a unit. */
  static String size(MemorySize size) {
    double amount = size.bytes();
    String[] units = {"B", "KiB", "MiB", "GiB", "TiB"};
    int unit = 0;
    while (amount >= 1024 && unit < units.length - 1) {
      amount /= 1024;
      unit++;
    }
    String format = amount == Math.rint(amount) || amount >= 100 ? "%.0f %s" : "%.1f %s";
    return String.format(Locale.ROOT, format, amount, units[unit]);
  }

  private static <T> T parse(String text, String what, List<T> values, Function<T, String> wordOf) {
    String wanted = text.strip().toLowerCase(Locale.ROOT).replace('_', '-');
    return values.stream()
        .filter(value -> wordOf.apply(value).equals(wanted))
        .findFirst()
        .orElseThrow(
            () ->
                new TypeConversionException(
                    "not a "
                        + what
                        + ": '"
                        + text
                        + "' (one of "
                        + values.stream().map(wordOf).collect(Collectors.joining(", "))
                        + ")"));
  }
}
