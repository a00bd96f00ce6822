package dev.vgpu.bench.chaos.soak;

import java.util.List;
import java.util.Locale;

/** Draws a soak test: one panel for each figure over the hours. Confined to one thread. */
final class SoakPlot {
  private static final int WIDTH = 1180;
  private static final int TOP = 60;
  private static final int COLUMNS = 2;
  private static final int PANEL_WIDTH = 480;
  private static final int PANEL_HEIGHT = 110;
  private static final int ROW = 175;
  private static final int LEFT = 75;
  private static final int GAP = 90;
  private static final int MOST_POINTS = 2_000;

  private record Line(String figure, String colour) {}

  private record Panel(String title, List<Line> lines) {}

  private static Panel panel(String title, String figure) {
    return new Panel(title, List.of(new Line(figure, "#1f6fb2")));
  }

  private static final List<Panel> PANELS =
      List.of(
          panel("heap of the seat after a collection, MiB", "heap_mib"),
          panel("resident memory of the seat, MiB", "resident_mib"),
          panel("threads of the seat", "threads"),
          panel("descriptors of the seat", "descriptors"),
          panel("shared pages that the seat has mapped", "pages"),
          panel("files in the run directory", "files"),
          new Panel(
              "disk of the run directory, MiB; grey: its usage journal",
              List.of(new Line("journal_mib", "#8c8c8c"), new Line("disk_mib", "#1f6fb2"))),
          panel("ledgers of all leases, MiB; equal to the GPUs' own accounts", "ledger_mib"),
          new Panel(
              "fixed shares, held of entitled: median, least, most",
              List.of(
                  new Line("fixed_least", "#c9d9e8"),
                  new Line("fixed_most", "#c9d9e8"),
                  new Line("fixed_held", "#1f6fb2"))),
          new Panel(
              "burst shares, held of guaranteed: median, least",
              List.of(new Line("burst_least", "#c9d9e8"), new Line("burst_held", "#1f6fb2"))),
          panel("tenants", "tenants"),
          panel("how late the machine woke who slept, at worst so far, ms", "machine_late_ms"));

  private final SoakResults results;
  private final StringBuilder svg = new StringBuilder();

  private SoakPlot(SoakResults results) {
    this.results = results;
  }

  /** {@return an SVG document} */
  static String svg(SoakResults results) {
    SoakPlot plot = new SoakPlot(results);
    int height = TOP + (PANELS.size() + COLUMNS - 1) / COLUMNS * ROW;
    plot.add(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d"
            + " %d\" font-family=\"sans-serif\" font-size=\"12\">%n",
        WIDTH, height, WIDTH, height);
    plot.add("<rect width=\"%d\" height=\"%d\" fill=\"white\"/>%n", WIDTH, height);
    String title =
        String.format(
            Locale.ROOT,
            "Soak: %.2f hours, %d pieces; seats killed: %d, programs: %d",
            results.seconds() / 3_600,
            results.pieces(),
            results.counts().getOrDefault("seat_changes", 0L),
            results.counts().getOrDefault("programs", 0L));
    plot.text(LEFT, 28, "start", 17, title);
    for (int i = 0; i < PANELS.size(); i++) {
      plot.panel(PANELS.get(i), LEFT + i % COLUMNS * (PANEL_WIDTH + GAP), TOP + i / COLUMNS * ROW);
    }
    plot.svg.append("</svg>\n");
    return plot.svg.toString();
  }

  private void panel(Panel panel, double left, double top) {
    text(left, top + 12, "start", 13, panel.title());
    double base = top + 24 + PANEL_HEIGHT;
    double most =
        panel.lines().stream()
            .flatMap(line -> results.points(line.figure(), false).stream())
            .mapToDouble(Trend.Point::value)
            .max()
            .orElse(1);
    double ceiling = ceiling(most);
    for (int i = 0; i <= 2; i++) {
      double y = base - PANEL_HEIGHT * i / 2.0;
      add(
          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"#e4e4e4\"/>%n",
          left, y, left + PANEL_WIDTH, y);
      text(left - 6, y + 4, "end", 11, number(ceiling * i / 2));
    }
    double hours = Math.max(1, results.seconds()) / 3_600;
    for (int i = 0; i <= 4; i++) {
      double x = left + PANEL_WIDTH * i / 4.0;
      text(x, base + 15, "middle", 11, number(hours * i / 4) + (i == 4 ? " h" : ""));
    }
    panel.lines().forEach(line -> line(line, left, base, ceiling));
  }

  private void line(Line line, double left, double base, double ceiling) {
    List<Trend.Point> points = results.points(line.figure(), true);
    StringBuilder path = new StringBuilder();
    long segment = Long.MIN_VALUE;
    int step = 1 + points.size() / MOST_POINTS;
    for (int i = 0; i < points.size(); i += step) {
      Trend.Point point = points.get(i);
      double x = left + PANEL_WIDTH * point.seconds() / Math.max(1, results.seconds());
      double y = base - PANEL_HEIGHT * point.value() / ceiling;
      String move = point.segment() == segment ? "L" : "M";
      segment = point.segment();
      path.append(String.format(Locale.ROOT, "%s%.1f %.1f", move, x, y));
    }
    add("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"1.3\"/>%n", path, line.colour());
  }

  private static double ceiling(double most) {
    double power = Math.pow(10, Math.floor(Math.log10(Math.max(most, 1e-3))));
    for (double times : List.of(1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)) {
      if (most <= times * power) {
        return times * power;
      }
    }
    return 10 * power;
  }

  private static String number(double value) {
    return String.format(Locale.ROOT, value >= 10 || value == 0 ? "%.0f" : "%.2f", value);
  }

  private void text(double x, double y, String anchor, int size, String content) {
    add(
        "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-size=\"%d\" fill=\"#333\">%s</text>%n",
        x, y, anchor, size, content.replace("&", "&amp;").replace("<", "&lt;"));
  }

  private void add(String format, Object... values) {
    svg.append(String.format(Locale.ROOT, format, values));
  }
}
