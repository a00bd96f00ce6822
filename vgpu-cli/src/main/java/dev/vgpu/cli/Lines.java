package dev.vgpu.cli;

import java.util.ArrayList;
import java.util.List;

/** Texts as lines of a terminal of 80 columns. */
final class Lines {
  static final int WIDTH = 80;
  private static final int MOST_LINES = 3;

  private Lines() {}

  /** A text in as many lines as it takes, but not more than three. */
  static List<String> wrapped(String text) {
    List<String> lines = new ArrayList<>();
    String rest = text;
    while (rest.length() > WIDTH && lines.size() < MOST_LINES - 1) {
      int blank = rest.lastIndexOf(' ', WIDTH);
      int end = blank > WIDTH / 2 ? blank : WIDTH;
      lines.add(rest.substring(0, end));
      rest = "    " + rest.substring(end).strip();
    }
    lines.add(cut(rest, WIDTH));
    return lines;
  }

  static String cut(String text, int width) {
    return text.length() <= width ? text : text.substring(0, width - 1) + "…";
  }
}
