package dev.vgpu.bench.report;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.function.Consumer;

/** The results of benchmarks: figures for programs, lines for people. Confined to one thread. */
public final class Report {
  private final Consumer<String> progress;
  private final Map<String, Object> figures = new LinkedHashMap<>();
  private final StringBuilder text = new StringBuilder();

  /** Creates an empty report that passes progress on. */
  public Report(Consumer<String> progress) {
    this.progress = progress;
  }

  /** Reports what is being done. */
  public void progress(String what) {
    progress.accept(what);
  }

  /** Adds a figure, rounded to three decimals. */
  public void figure(String key, Object value) {
    figures.put(key, value instanceof Double number ? rounded(number) : value);
  }

  /** Adds figures. */
  public void figures(Map<String, Object> values) {
    values.forEach(this::figure);
  }

  /** Adds a part of a figure, for example its value for a number of live allocations. */
  public void figure(String key, String part, double value) {
    @SuppressWarnings("unchecked") // created here only
    Map<String, Object> parts =
        (Map<String, Object>) figures.computeIfAbsent(key, name -> new LinkedHashMap<>());
    parts.put(part, rounded(value));
  }

  /** Adds a line for people. */
  public void line(String format, Object... values) {
    text.append(String.format(Locale.ROOT, format, values)).append('\n');
  }

  /** Adds lines for people. */
  public void text(String lines) {
    text.append(lines);
  }

  /** {@return all figures} */
  public Map<String, Object> figures() {
    return figures;
  }

  /** {@return all lines} */
  public String text() {
    return text.toString();
  }

  /** {@return the median; NaN without values} */
  public static double median(double[] values) {
    double[] sorted = values.clone();
    Arrays.sort(sorted);
    return sorted.length == 0 ? Double.NaN : sorted[sorted.length / 2];
  }

  private static double rounded(double value) {
    return Math.round(value * 1000) / 1000.0;
  }
}
