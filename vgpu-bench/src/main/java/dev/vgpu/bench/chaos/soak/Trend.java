package dev.vgpu.bench.chaos.soak;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * How fast a figure grows: the median of the slopes of all pairs of points, which is not affected
 * if a fifth of the points are outliers (Theil-Sen). Points of different segments, such as those of
 * different processes, are not compared.
 */
final class Trend {
  private static final int MOST_POINTS = 250;

  /** A point: its segment, time and value. */
  record Point(long segment, double seconds, double value) {}

  private Trend() {}

  /**
   * {@return the growth of the figure per second; 0 if there are too few points}
   *
   * @param points in the order of time
   * @param warmUpSeconds the start of each segment that is left out, at most half of it
   */
  static double slope(List<Point> points, double warmUpSeconds) {
    List<Double> slopes = new ArrayList<>();
    for (List<Point> segment : segments(points)) {
      List<Point> warm = thinned(warm(segment, warmUpSeconds));
      for (int i = 0; i < warm.size(); i++) {
        for (int k = i + 1; k < warm.size(); k++) {
          double seconds = warm.get(k).seconds() - warm.get(i).seconds();
          if (seconds > 0) {
            slopes.add((warm.get(k).value() - warm.get(i).value()) / seconds);
          }
        }
      }
    }
    return slopes.isEmpty() ? 0 : median(slopes);
  }

  /** {@return the length of the longest segment, in seconds} */
  static double longest(List<Point> points) {
    return segments(points).stream()
        .mapToDouble(each -> each.get(each.size() - 1).seconds() - each.get(0).seconds())
        .max()
        .orElse(0);
  }

  private static List<List<Point>> segments(List<Point> points) {
    List<List<Point>> segments = new ArrayList<>();
    for (Point point : points) {
      if (segments.isEmpty()
          || segments.get(segments.size() - 1).get(0).segment() != point.segment()) {
        segments.add(new ArrayList<>());
      }
      segments.get(segments.size() - 1).add(point);
    }
    return segments;
  }

  private static List<Point> warm(List<Point> segment, double warmUpSeconds) {
    double begin = segment.get(0).seconds();
    double end = segment.get(segment.size() - 1).seconds();
    double from = begin + Math.min(warmUpSeconds, (end - begin) / 2);
    return segment.stream().filter(point -> point.seconds() >= from).toList();
  }

  private static List<Point> thinned(List<Point> points) {
    int step = 1 + points.size() / MOST_POINTS;
    return Stream.iterate(0, i -> i < points.size(), i -> i + step).map(points::get).toList();
  }

  static double median(List<Double> values) {
    List<Double> sorted = values.stream().sorted().toList();
    int middle = sorted.size() / 2;
    return sorted.size() % 2 == 1
        ? sorted.get(middle)
        : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
  }
}
