package dev.vgpu.cli.console;

import java.util.ArrayList;
import java.util.List;

/** A table in plain text: the first column to the left, the others to the right. Mutable. */
public final class TextTable {
  private static final String GAP = "  ";

  private final List<List<String>> rows = new ArrayList<>();

  /**
   * Creates a table.
   *
   * @param headings one for each column
   */
  public TextTable(String... headings) {
    rows.add(List.of(headings));
  }

  /**
   * Adds a row.
   *
   * @param cells one for each column
   * @return this table
   * @throws IllegalArgumentException if there are more or fewer cells than columns
   */
  public TextTable row(String... cells) {
    if (cells.length != rows.get(0).size()) {
      throw new IllegalArgumentException(
          "a row has another number of cells: columns="
              + rows.get(0).size()
              + " cells="
              + cells.length);
    }
    rows.add(List.of(cells));
    return this;
  }

  /** {@return the lines, the headings first, without blanks at the end} */
  public List<String> lines() {
    int[] widths = new int[rows.get(0).size()];
    for (List<String> row : rows) {
      for (int i = 0; i < widths.length; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    return rows.stream().map(row -> line(row, widths)).toList();
  }

  private static String line(List<String> row, int[] widths) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < widths.length; i++) {
      String blanks = " ".repeat(widths[i] - row.get(i).length());
      line.append(i == 0 ? row.get(i) + blanks : GAP + blanks + row.get(i));
    }
    return line.toString().stripTrailing();
  }
}
