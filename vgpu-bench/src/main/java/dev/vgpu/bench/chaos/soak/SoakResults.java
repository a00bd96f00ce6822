package dev.vgpu.bench.chaos.soak;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * The measurements, one line of JSON each, in a file to which further runs append. Confined to one
 * thread.
 */
final class SoakResults {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String COUNT = "n_";

  private final Path file;
  private final List<Map<String, Double>> samples = new ArrayList<>();
  private double beforeSeconds;
  private int piece = 1;

  SoakResults(Path directory) {
    this.file = directory.resolve("soak.jsonl");
  }

  boolean areAny() {
    return Files.exists(file);
  }

  /** Reads the measurements of earlier runs; leaves out an incomplete last line. */
  void read() throws IOException {
    if (!areAny()) {
      return;
    }
    for (String line : Files.readAllLines(file, UTF_8)) {
      if (line.endsWith("}")) {
        samples.add(JSON.readValue(line, new TypeReference<Map<String, Double>>() {}));
      }
    }
    if (!samples.isEmpty()) {
      Map<String, Double> last = samples.get(samples.size() - 1);
      beforeSeconds = last.getOrDefault("seconds", 0.0);
      piece = 1 + (int) (double) last.getOrDefault("piece", 0.0);
    }
  }

  /** Adds a sample. */
  void add(long seed, double seconds, Map<String, Double> figures, Map<String, Integer> counts)
      throws IOException {
    Map<String, Double> sample = new LinkedHashMap<>();
    sample.put("piece", (double) piece);
    sample.put("seed", (double) seed);
    sample.put("seconds", beforeSeconds + seconds);
    sample.putAll(figures);
    counts.forEach((what, times) -> sample.put(COUNT + what, (double) times));
    samples.add(sample);
    Files.writeString(
        file,
        JSON.writeValueAsString(sample) + "\n",
        UTF_8,
        StandardOpenOption.CREATE,
        StandardOpenOption.APPEND);
  }

  List<Map<String, Double>> samples() {
    return samples;
  }

  int pieces() {
    return (int) samples.stream().map(sample -> sample.get("piece")).distinct().count();
  }

  /** {@return the observed time, over all runs} */
  double seconds() {
    return samples.isEmpty() ? 0 : samples.get(samples.size() - 1).getOrDefault("seconds", 0.0);
  }

  /** {@return the points of a figure} Each process that holds the seat begins a new segment. */
  List<Trend.Point> points(String name, boolean ofTheSeat) {
    List<Trend.Point> points = new ArrayList<>();
    for (Map<String, Double> sample : samples) {
      Double value = sample.get(name);
      if (value != null) {
        double part = ofTheSeat ? sample.getOrDefault("seat", 0.0) : 0;
        long segment = Math.round(sample.getOrDefault("piece", 0.0) * 1e9 + part);
        points.add(new Trend.Point(segment, sample.getOrDefault("seconds", 0.0), value));
      }
    }
    return points;
  }

  /** {@return how often each event happened, over all runs} */
  Map<String, Long> counts() {
    Map<Double, Map<String, Double>> lasts = new TreeMap<>();
    samples.forEach(sample -> lasts.put(sample.getOrDefault("piece", 0.0), sample));
    Map<String, Long> sums = new LinkedHashMap<>();
    for (Map<String, Double> last : lasts.values()) {
      last.forEach(
          (name, value) -> {
            if (name.startsWith(COUNT)) {
              sums.merge(name.substring(COUNT.length()), Math.round(value), Long::sum);
            }
          });
    }
    return sums;
  }
}
