package dev.vgpu.bench.chaos.soak;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The result of a soak test. Immutable. */
final class SoakReport {
  /** A JVM compiles what is called often, and its memory grows by that. */
  private static final double WARM_UP_SECONDS = 900;

  /** Shorter observations prove no growth: figures go up and down within seconds. */
  private static final double LEAST_SECONDS = 60;

  private static final int LEAST_SAMPLES = 4;

  /** Eight tenants lose 5 % of a GPU to changes between them: {@code vgpu bench fairness}. */
  private static final double LEAST_OF_FIXED = 0.90;

  /** Burst shares get what others leave. */
  private static final double LEAST_OF_BURST = 0.95;

  private static final double MOST_OF_FIXED = 1.05;

  /** A figure that must not grow by more than this slack and a tenth of its median. */
  private record Watched(String name, boolean ofTheSeat, double slack) {}

  private static final List<Watched> WATCHED =
      List.of(
          new Watched("heap_mib", true, 0.5),
          new Watched("resident_mib", true, 4),
          new Watched("threads", true, 3),
          new Watched("descriptors", true, 4),
          new Watched("pages", true, 8),
          new Watched("files", false, 32),
          new Watched("disk_mib", false, 1));

  private static final double MOST_DRIFT = 0.03;
  private static final double MOST_OF_GROWTH = 0.1;

  private final SoakResults results;
  private final List<String> failures = new ArrayList<>();
  private final Map<String, Object> figures = new LinkedHashMap<>();
  private final Map<String, Object> surroundings;
  private final List<String> rows = new ArrayList<>();
  private boolean tells;

  SoakReport(SoakResults results, @Nullable String failure, Map<String, Object> surroundings) {
    this.results = results;
    this.surroundings = surroundings;
    if (failure != null) {
      failures.add(failure);
    }
    figures.put("hours", rounded(results.seconds() / 3_600));
    figures.put("pieces", results.pieces());
    figures.put("samples", results.samples().size());
    figures.put("counts", results.counts());
    WATCHED.forEach(this::growth);
    drift("fixed_held");
    drift("burst_held");
    worst("worst_still_s");
    worst("books_settled_ms");
    worst("machine_late_ms");
    if (results.samples().size() < LEAST_SAMPLES) {
      failures.add("too short to say: samples=" + results.samples().size());
    }
    figures.put("failures", failures);
  }

  boolean held() {
    return failures.isEmpty();
  }

  private static double rounded(double value) {
    return Math.round(value * 1_000) / 1_000.0;
  }

  private List<Double> values(String name) {
    return results.points(name, false).stream().map(Trend.Point::value).toList();
  }

  private Map<String, Object> row(String name, double perHour) {
    List<Double> all = values(name);
    int part = Math.max(1, all.size() / 4);
    Map<String, Object> row = new LinkedHashMap<>();
    row.put("first_quarter", rounded(Trend.median(all.subList(0, part))));
    row.put("last_quarter", rounded(Trend.median(all.subList(all.size() - part, all.size()))));
    row.put("least", rounded(all.stream().min(Double::compare).orElseThrow()));
    row.put("most", rounded(all.stream().max(Double::compare).orElseThrow()));
    row.put("per_hour", rounded(perHour));
    figures.put(name, row);
    rows.add(
        String.format(
            Locale.ROOT,
            "%-16s %10s %10s %10s %10s %10s",
            name,
            row.get("first_quarter"),
            row.get("last_quarter"),
            row.get("least"),
            row.get("most"),
            row.get("per_hour")));
    return row;
  }

  private void growth(Watched watched) {
    List<Trend.Point> points = results.points(watched.name(), watched.ofTheSeat());
    if (points.isEmpty()) {
      return;
    }
    double slope = Trend.slope(points, WARM_UP_SECONDS);
    Map<String, Object> ignored = row(watched.name(), slope * 3_600);
    double grown = slope * Trend.longest(points);
    double median = Trend.median(points.stream().map(Trend.Point::value).toList());
    if (tells(points) && grown > watched.slack() + MOST_OF_GROWTH * median) {
      failures.add(
          String.format(Locale.ROOT, "%s grows by %.2f an hour", watched.name(), slope * 3_600));
    }
  }

  private boolean tells(List<Trend.Point> points) {
    boolean isLong = Trend.longest(points) >= LEAST_SECONDS;
    tells |= isLong;
    return isLong;
  }

  private void drift(String name) {
    List<Trend.Point> points = results.points(name, false);
    if (points.isEmpty()) {
      return;
    }
    double slope = Trend.slope(points, WARM_UP_SECONDS);
    Map<String, Object> ignored = row(name, slope * 3_600);
    double drifted = Math.abs(slope * Trend.longest(points));
    double median = Trend.median(points.stream().map(Trend.Point::value).toList());
    boolean isFixed = name.startsWith("fixed");
    // The part of a burst share depends on which other tenants are there.
    if (tells(points) && isFixed && drifted > MOST_DRIFT) {
      failures.add(String.format(Locale.ROOT, "%s drifts by %.3f an hour", name, slope * 3_600));
    }
    if (median < (isFixed ? LEAST_OF_FIXED : LEAST_OF_BURST)
        || (isFixed && median > MOST_OF_FIXED)) {
      failures.add(String.format(Locale.ROOT, "%s is %.3f of what it should be", name, median));
    }
  }

  private void worst(String name) {
    List<Double> all = values(name);
    if (!all.isEmpty()) {
      figures.put(name, rounded(all.stream().max(Double::compare).orElseThrow()));
    }
  }

  String text() {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "soak: %s h in %s pieces, %s samples%n%s%n%n",
            figures.get("hours"),
            figures.get("pieces"),
            figures.get("samples"),
            figures.get("counts")));
    text.append(
        String.format(
            Locale.ROOT,
            "%-16s %10s %10s %10s %10s %10s%n",
            "",
            "first 1/4",
            "last 1/4",
            "least",
            "most",
            "per hour"));
    rows.forEach(row -> text.append(row).append('\n'));
    for (String name : List.of("worst_still_s", "books_settled_ms", "machine_late_ms")) {
      text.append(name).append(": at worst ").append(figures.getOrDefault(name, "-")).append('\n');
    }
    text.append('\n');
    surroundings.forEach(
        (name, value) -> text.append(name).append(": ").append(value).append('\n'));
    failures.forEach(failure -> text.append("FAILED: ").append(failure).append('\n'));
    if (held()) {
      text.append(tells ? "nothing grows, nothing drifts\n" : "too short to say what grows\n");
    }
    return text.toString();
  }

  String json() throws IOException {
    Map<String, Object> all = new LinkedHashMap<>(figures);
    all.putAll(surroundings);
    return new ObjectMapper().writerWithDefaultPrettyPrinter().writeValueAsString(all) + "\n";
  }

  /** Writes the text, the figures and the plot. */
  void write(Path directory) throws IOException {
    Files.writeString(directory.resolve("soak.txt"), text(), UTF_8);
    Files.writeString(directory.resolve("soak.json"), json(), UTF_8);
    Files.writeString(directory.resolve("soak.svg"), SoakPlot.svg(results), UTF_8);
  }
}
