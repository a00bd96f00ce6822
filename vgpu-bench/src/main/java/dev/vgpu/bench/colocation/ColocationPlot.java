package dev.vgpu.bench.colocation;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/**
 * Draws results of the co-location benchmark. Each file becomes a row of two panels: the 99th
 * percentile of online requests relative to alone, and the offline work done.
 */
public final class ColocationPlot {
  private static final int WIDTH = 1180;
  private static final int TOP = 84;
  private static final int ROW = 268;
  private static final int PANEL_WIDTH = 470;
  private static final int PANEL_HEIGHT = 170;
  private static final int LEFT = 70;
  private static final int GAP = 100;
  private static final double BAR = 17;
  private static final double MOST_RATIO = 100;
  private static final Map<String, String> COLOURS =
      Map.of("uncontrolled", "#8c8c8c", "ours", "#1f6fb2", "strict", "#d9822b");
  private static final List<String> MODES = List.of("uncontrolled", "ours", "strict");

  private final StringBuilder svg = new StringBuilder();

  private ColocationPlot() {}

  /**
   * Draws results.
   *
   * @param files outputs of {@code vgpu bench colocation --json}
   * @return an SVG document
   * @throws IOException if a file cannot be read
   */
  public static String svg(List<Path> files) throws IOException {
    ColocationPlot plot = new ColocationPlot();
    plot.begin(files.size());
    for (int i = 0; i < files.size(); i++) {
      JsonNode result = new ObjectMapper().readTree(Files.readString(files.get(i), UTF_8));
      if (!result.path("modes").path("ours").isObject()) {
        throw new IOException(files.get(i) + " has no modes.ours: not a co-location result");
      }
      plot.row(result, TOP + i * ROW);
    }
    plot.svg.append("</svg>\n");
    return plot.svg.toString();
  }

  private void begin(int rows) {
    int height = TOP + rows * ROW;
    add(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d"
            + " %d\" font-family=\"sans-serif\" font-size=\"12\">%n",
        WIDTH, height, WIDTH, height);
    add("<rect width=\"%d\" height=\"%d\" fill=\"white\"/>%n", WIDTH, height);
    text(LEFT, 26, "start", 17, "#111", "Inference requests beside training on one emulated GPU");
    double x = LEFT;
    text(LEFT + 870, 54, "start", 12, "#b3261e", "- - target");
    for (String mode : MODES) {
      bar(x, 44, 12, 12, mode, false);
      bar(x + 14, 44, 12, 12, mode, true);
      text(x + 32, 54, "start", 12, "#333", mode + ": one, three offline programs");
      x += 290;
    }
  }

  private void row(JsonNode result, double top) {
    String trace = result.path("trace").asText();
    String kernels = result.path("kernels").asText();
    String of =
        String.format(
            Locale.ROOT,
            "trace %s, offline kernels up to %.1f ms (%s)",
            trace,
            result.path("longest_offline_kernel_ms").asDouble(),
            kernels);
    text(LEFT, top + 14, "start", 14, "#111", "Online p99, times that of alone: " + of);
    double second = LEFT + PANEL_WIDTH + GAP;
    text(second, top + 14, "start", 14, "#111", "Offline work, of what online work left");
    double base = top + 30 + PANEL_HEIGHT;
    axis(LEFT, base, List.of(1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0), true);
    axis(second, base, List.of(0.0, 0.2, 0.4, 0.6, 0.8, 1.0), false);
    JsonNode loads = result.path("modes").path("ours");
    Map<Integer, String> sorted = new TreeMap<>();
    loads.fieldNames().forEachRemaining(load -> sorted.put(Integer.valueOf(load), load));
    int index = 0;
    for (String load : sorted.values()) {
      double x = 12 + index * (PANEL_WIDTH - 12.0) / sorted.size();
      group(result, load, LEFT + x, base, "online_p99_ratio", true);
      group(result, load, second + x, base, "offline_of_ideal", false);
      JsonNode alone = result.path("modes").path("alone").path(load);
      String p99 =
          String.format(
              Locale.ROOT, "%s %% (%.1f ms alone)", load, alone.path("online_p99_ms").asDouble());
      text(LEFT + x + 3.5 * BAR, base + 17, "middle", 12, "#333", p99);
      text(second + x + 3.5 * BAR, base + 17, "middle", 12, "#333", load + " % busy");
      double target = target(result, alone.path("online_p99_ms").asDouble());
      String label = String.format(Locale.ROOT, "%.2f", target);
      reference(LEFT + x - 4, 6 * BAR + 16, base, target, true, label);
      index++;
    }
    reference(second, PANEL_WIDTH, base, 0.95, false, "0.95");
  }

  private void group(
      JsonNode result, String load, double x, double base, String key, boolean logarithmic) {
    double at = x;
    for (String mode : MODES) {
      for (String count : List.of("one", "three")) {
        double value = result.path("modes").path(mode).path(load).path(count).path(key).asDouble();
        double height = height(value, logarithmic);
        bar(at, base - height, BAR - 3, height, mode, count.equals("three"));
        String label = String.format(Locale.ROOT, value < 10 ? "%.2f" : "%.0f", value);
        add(
            "<text x=\"%.1f\" y=\"%.1f\" font-size=\"10\" fill=\"#333\" transform=\"rotate(-90"
                + " %.1f %.1f)\">%s</text>%n",
            at + 11, base - height - 3, at + 11, base - height - 3, label);
        at += BAR;
      }
      at += 5;
    }
  }

  private static double height(double value, boolean logarithmic) {
    double part = logarithmic ? Math.log(value) / Math.log(MOST_RATIO) : value;
    return PANEL_HEIGHT * Math.max(0, Math.min(1, part)) * (logarithmic ? 1 : 0.85);
  }

  private void axis(double left, double base, List<Double> ticks, boolean logarithmic) {
    for (double tick : ticks) {
      double y = base - height(tick, logarithmic);
      add(
          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>%n",
          left, y, left + PANEL_WIDTH, y);
      String label = String.format(Locale.ROOT, logarithmic ? "%.0f" : "%.1f", tick);
      text(left - 8, y + 4, "end", 11, "#555", label);
    }
  }

  /** The bound that level 1 promises: 2 % more, and for long kernels one kernel. */
  private static double target(JsonNode result, double aloneMs) {
    boolean isShort = result.path("kernels").asText().equals(Kernels.SHORT.word());
    double kernelMs = isShort ? 0 : result.path("longest_offline_kernel_ms").asDouble();
    return (ColocationFigures.SLACK * aloneMs + kernelMs) / aloneMs;
  }

  private void reference(
      double left, double width, double base, double value, boolean logarithmic, String label) {
    double y = base - height(value, logarithmic);
    add(
        "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#b3261e\""
            + " stroke-dasharray=\"4 3\"/>%n",
        left, y, left + width, y);
    text(left + width + 3, y + 4, "start", 10, "#b3261e", label);
  }

  private void bar(double x, double y, double width, double height, String mode, boolean isThree) {
    String colour = COLOURS.getOrDefault(mode, "#000");
    add(
        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\""
            + " fill-opacity=\"%s\" stroke=\"%s\"/>%n",
        x, y, width, Math.max(0.5, height), colour, isThree ? "0.45" : "1", colour);
  }

  private void text(double x, double y, String anchor, int size, String colour, String content) {
    add(
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"%s\">%s</text>%n",
        x, y, anchor, size, colour, content.replace("&", "&amp;").replace("<", "&lt;"));
  }

  private void add(String format, Object... values) {
    svg.append(String.format(Locale.ROOT, format, values));
  }
}
