package dev.vgpu.bench;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/** What benchmarks found: figures for programs, lines for people. Confined to one thread. */
final class Report {
  private final Consumer<String> progress;
  private final Map<String, Object> figures = new LinkedHashMap<>();
  private final StringBuilder text = new StringBuilder();

  Report(Consumer<String> progress) {
    this.progress = progress;
  }

  void progress(String what) {
    progress.accept(what);
  }

  void figure(String key, Object value) {
    figures.put(key, value instanceof Double number ? rounded(number) : value);
  }

  void figures(Map<String, Object> values) {
    values.forEach(this::figure);
  }

  /** A figure of a figure, for example by the number of live allocations. */
  void figure(String key, String part, double value) {
    @SuppressWarnings("unchecked") // made here only
    Map<String, Object> parts =
        (Map<String, Object>) figures.computeIfAbsent(key, name -> new LinkedHashMap<>());
    parts.put(part, rounded(value));
  }

  void line(String format, Object... values) {
    text.append(String.format(Locale.ROOT, format, values)).append('\n');
  }

  void text(String lines) {
    text.append(lines);
  }

  Map<String, Object> figures() {
    return figures;
  }

  String text() {
    return text.toString();
  }

  static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted.length == 0 ? Double.NaN : sorted[sorted.length / 2];
  }

  private static double rounded(double value) {
    return Math.round(value * 1000) / 1000.0;
  }
}
