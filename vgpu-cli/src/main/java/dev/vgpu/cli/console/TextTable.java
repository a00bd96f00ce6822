package dev.vgpu.cli.console;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** A table in plain text: the first column is left-aligned, the others right-aligned. Mutable. */
public final class TextTable {
  private static final String GAP = "  ";
  private static final int LEAST = 9;

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
    rows.add(Arrays.stream(cells).map(HarmlessText::oneLine).toList());
    return this;
  }

  /** {@return the lines, headings first, without trailing blanks} */
  public List<String> lines() {
    int[] widths = widths();
    return rows.stream().map(row -> line(row, widths)).toList();
  }

  /**
   * {@return the lines; if they are too wide, cells of some columns lose their middle, because the
   * names in them differ at the ends} Lines may still be too wide after that.
   *
   * @param width the longest line wanted
   * @param shortened indexes of columns, from 0; the first is shortened first
   */
  public List<String> lines(int width, int... shortened) {
    int[] widths = widths();
    for (int column : shortened) {
      int over = Arrays.stream(widths).sum() + GAP.length() * (widths.length - 1) - width;
      if (over > 0) {
        widths[column] = Math.max(Math.min(LEAST, widths[column]), widths[column] - over);
      }
    }
    return rows.stream().map(row -> line(row, widths)).toList();
  }

  private int[] widths() {
    int[] widths = new int[rows.get(0).size()];
    for (List<String> row : rows) {
      for (int i = 0; i < widths.length; i++) {
        widths[i] = Math.max(widths[i], row.get(i).length());
      }
    }
    return widths;
  }

  private static String line(List<String> row, int[] widths) {
    StringBuilder line = new StringBuilder();
    for (int i = 0; i < widths.length; i++) {
      String cell = Lines.cutInside(row.get(i), widths[i]);
      String blanks = " ".repeat(widths[i] - cell.length());
      line.append(i == 0 ? cell + blanks : GAP + blanks + cell);
    }
    return line.toString().stripTrailing();
  }
}
