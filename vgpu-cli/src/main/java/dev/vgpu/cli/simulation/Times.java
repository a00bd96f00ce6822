package dev.vgpu.cli.simulation;

import java.util.Locale;

/** Formats times for people. */
final class Times {
  private Times() {}

  /** {@return a time in a suitable unit} */
  static String text(long ns) {
    if (ns < 1_000) {
      return ns + " ns";
    } else if (ns < 1_000_000) {
      return trimmed(ns / 1e3) + " us";
    } else if (ns < 1_000_000_000) {
      return trimmed(ns / 1e6) + " ms";
    } else if (ns < 3_600_000_000_000L) {
      return trimmed(ns / 1e9) + " s";
    } else {
      return trimmed(ns / 3_600e9) + " h";
    }
  }

  private static String trimmed(double number) {
    String text = String.format(Locale.ROOT, "%.3f", number);
    return text.replaceFirst("\\.?0+$", "");
  }
}
