package dev.vgpu.cli.text;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.watch.SharingMode;
import java.time.Duration;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import picocli.CommandLine.TypeConversionException;

/** The words for policies, classes, sizes and durations, on the command line and in tables. */
public final class Words {
  private static final Pattern DURATION = Pattern.compile("(\\d{1,9})(us|ms|s|m|h)");

  private Words() {}

  /** {@return the size given on a command line} */
  public static MemorySize memorySize(String text) {
    try {
      return MemorySize.fromString(text);
    } catch (IllegalArgumentException e) {
      throw new TypeConversionException(e.getMessage());
    }
  }

  /** {@return the duration given on a command line, for example {@code 500ms}} */
  public static Duration duration(String text) {
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
      // Reported below.
    }
    throw new TypeConversionException(
        "not a duration: '" + text + "' (write for example 500ms, 10s or 2m)");
  }

  /** {@return a duration as it is written on a command line} */
  public static String of(Duration duration) {
    long seconds = duration.toSeconds();
    int us = duration.toNanosPart() / 1_000;
    if (us == 0) {
      if (seconds > 0 && seconds % 3600 == 0) {
        return seconds / 3600 + "h";
      }
      return seconds > 0 && seconds % 60 == 0 ? seconds / 60 + "m" : seconds + "s";
    }
    if (seconds > 0) {
      return duration.toString();
    }
    return us % 1_000 == 0 ? us / 1_000 + "ms" : us + "us";
  }

  /** {@return the policy given on a command line} */
  public static SharePolicy policy(String text) {
    String shared = text.strip().replaceFirst("(?i)[-_]share$", ""); // as the library names it
    return parse(shared, "policy", List.of(SharePolicy.values()), Words::of);
  }

  /** {@return the class given on a command line} */
  public static PreemptionClass preemptionClass(String text) {
    return parse(text, "class", List.of(PreemptionClass.values()), Words::of);
  }

  /** {@return the failure mode given on a command line} */
  public static FailureMode failureMode(String text) {
    return parse(text, "choice", List.of(FailureMode.values()), Words::word);
  }

  /** {@return the policy in one word} */
  public static String of(SharePolicy policy) {
    return switch (policy) {
      case BEST_EFFORT -> "best-effort";
      case FIXED_SHARE -> "fixed";
      case BURST_SHARE -> "burst";
    };
  }

  /** {@return the class in one word} */
  public static String of(PreemptionClass preemptionClass) {
    return word(preemptionClass);
  }

  /** {@return the sharing mode in one word} */
  public static String of(SharingMode mode) {
    return word(mode);
  }

  /** {@return a size for people, at most six characters and a unit} */
  public static String size(MemorySize size) {
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

  /** {@return a constant's word, for example {@code between-kernels}} */
  public static String word(Enum<?> value) {
    return value.name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /** {@return capabilities, in the words of {@code --require}} */
  public static List<String> of(Capabilities capabilities) {
    List<String> words = new ArrayList<>();
    words.add("memory:" + word(capabilities.memory()));
    words.add("compute:" + word(capabilities.compute()));
    words.add("preemption:" + word(capabilities.preemption()));
    words.add("faults:" + word(capabilities.faultIsolation()));
    capabilities.worksFor().stream().sorted().forEach(scope -> words.add("for:" + word(scope)));
    return words;
  }

  /** {@return a time for people, to the millisecond if it is short} */
  public static String time(Duration time) {
    long seconds = time.toSeconds();
    if (seconds < 60) {
      return String.format(Locale.ROOT, "%.3f s", time.toNanos() / 1e9);
    }
    return seconds < 3600
        ? String.format(Locale.ROOT, "%d:%02d min", seconds / 60, seconds % 60)
        : String.format(
            Locale.ROOT, "%d:%02d:%02d h", seconds / 3600, seconds / 60 % 60, seconds % 60);
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
