package dev.vgpu.cli.report;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A line chart of percentages over time, as an SVG document. Confined to one thread. */
public final class LineChart {
  private static final int WIDTH = 900;
  private static final int HEIGHT = 420;
  private static final int LEFT = 60;
  private static final int TOP = 50;
  private static final int ACROSS = 660;
  private static final int DOWN = 310;
  private static final List<String> COLOURS =
      List.of("#1f6fb2", "#c2571a", "#3d8b40", "#8c5fa8", "#8c8c8c", "#b0a020");

  private final String title;
  private final double hours;
  private final List<String> lines = new ArrayList<>();

  /**
   * Creates an empty chart.
   *
   * @param title the chart's title
   * @param hours the length of the time axis
   */
  public LineChart(String title, double hours) {
    this.title = title;
    this.hours = Math.max(hours, 1e-9);
  }

  /**
   * Adds a line.
   *
   * @param name the line's name
   * @param atHours the time of each point
   * @param percents the value of each point, 0 to 100
   */
  public void line(String name, double[] atHours, double[] percents) {
    String colour = COLOURS.get(lines.size() % COLOURS.size());
    StringBuilder path = new StringBuilder();
    for (int i = 0; i < atHours.length; i++) {
      double x = LEFT + ACROSS * atHours[i] / hours;
      double y = TOP + DOWN * (1 - percents[i] / 100);
      path.append(text("%s%.1f %.1f", i == 0 ? "M" : "L", x, y));
    }
    String drawn =
        text("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\"/>%n", path, colour);
    int y = TOP + 14 + 20 * lines.size();
    lines.add(drawn + label(LEFT + ACROSS + 12, y, "start", colour, name));
  }

  /** {@return the SVG document} */
  public String svg() {
    StringBuilder svg =
        new StringBuilder(
            text(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\""
                    + " font-family=\"sans-serif\" font-size=\"12\">%n"
                    + "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>%n",
                WIDTH, HEIGHT, WIDTH, HEIGHT));
    svg.append(label(LEFT, 28, "start", "#333", title));
    for (int i = 0; i <= 4; i++) {
      double y = TOP + DOWN * (1 - i / 4.0);
      svg.append(
          text(
              "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>%n",
              LEFT, y, LEFT + ACROSS, y));
      svg.append(label(LEFT - 6, y + 4, "end", "#333", 25 * i + " %"));
    }
    appendHours(svg);
    lines.forEach(svg::append);
    return svg.append("</svg>\n").toString();
  }

  /** Labels the time axis at round numbers, about six of them. */
  private void appendHours(StringBuilder svg) {
    int exponent = (int) Math.floor(Math.log10(hours / 6));
    double unit = Math.pow(10, exponent);
    double ratio = hours / 6 / unit;
    double step = unit * (ratio <= 1 ? 1 : ratio <= 2 ? 2 : ratio <= 5 ? 5 : 10);
    String format = text("%%.%df h", Math.max(0, -exponent));
    for (int i = 0; i * step <= hours * (1 + 1e-9); i++) {
      double x = LEFT + ACROSS * i * step / hours;
      svg.append(label(x, TOP + DOWN + 18, "middle", "#333", text(format, i * step)));
    }
  }

  private static String label(double x, double y, String anchor, String colour, String content) {
    return text(
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" fill=\"%s\">%s</text>%n",
        x, y, anchor, colour, content.replace("&", "&amp;").replace("<", "&lt;"));
  }

  private static String text(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}
