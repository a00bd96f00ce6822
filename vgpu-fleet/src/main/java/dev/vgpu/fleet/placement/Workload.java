package dev.vgpu.fleet.placement;

import dev.vgpu.fleet.model.Request;
import dev.vgpu.fleet.model.Shape;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The typical shapes and their odds. Immutable.
 *
 * @param shapes the shapes
 * @param odds the fraction of all requests that have each shape; they add up to 1
 */
public record Workload(List<Shape> shapes, List<Double> odds) {
  private static final double COVERED = 0.95;

  /** Copies the lists. */
  public Workload {
    shapes = List.copyOf(shapes);
    odds = List.copyOf(odds);
  }

  /**
   * {@return the most frequent shapes, which together make up 95 % of these requests}
   *
   * @param requests past or expected requests
   */
  public static Workload of(Iterable<Request> requests) {
    Map<Shape, Integer> counts = new LinkedHashMap<>();
    int all = 0;
    for (Request request : requests) {
      counts.merge(request.shape(), 1, Integer::sum);
      all++;
    }
    List<Map.Entry<Shape, Integer>> sorted = new ArrayList<>(counts.entrySet());
    sorted.sort(Map.Entry.comparingByValue(Comparator.reverseOrder()));
    List<Shape> shapes = new ArrayList<>();
    List<Integer> kept = new ArrayList<>();
    int covered = 0;
    for (Map.Entry<Shape, Integer> entry : sorted) {
      if (covered < COVERED * all) {
        shapes.add(entry.getKey());
        kept.add(entry.getValue());
        covered += entry.getValue();
      }
    }
    double sum = covered;
    return new Workload(shapes, kept.stream().map(count -> count / sum).toList());
  }

  /** {@return the mean GPU time of a request, in percent of one GPU} */
  double meanPercent() {
    double mean = 0;
    for (int i = 0; i < shapes.size(); i++) {
      mean += odds.get(i) * shapes.get(i).totalPercent();
    }
    return mean;
  }
}
