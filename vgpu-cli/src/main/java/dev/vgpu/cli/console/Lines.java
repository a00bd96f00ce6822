package dev.vgpu.cli.console;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Texts as lines of a terminal of 80 columns. */
public final class Lines {
  /** The columns of a terminal. */
  public static final int WIDTH = 80;

  private static final int MOST_LINES = 3;

  /** Words; what is between a colour's marks is one. */
  private static final Pattern WORD = Pattern.compile("(?:@\\|[^|]*\\|@|\\S)+");

  private static final Pattern MARKS = Pattern.compile("@\\|\\S+ |\\|@");

  private Lines() {}

  /** A text in as many lines as it takes, but not more than three. */
  public static List<String> wrapped(String text) {
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

  /** A text in as many lines as it takes; the marks of colours take no place. */
  public static List<String> whole(String text) {
    return whole(text, WIDTH);
  }

  /** The same for another width. */
  public static List<String> whole(String text, int width) {
    String indent = text.substring(0, text.length() - text.stripLeading().length());
    List<String> lines = new ArrayList<>();
    StringBuilder line = new StringBuilder(indent);
    int length = indent.length();
    Matcher words = WORD.matcher(text);
    for (boolean isFirst = true; words.find(); isFirst = false) {
      int wide = MARKS.matcher(words.group()).replaceAll("").length();
      if (!isFirst && length + 1 + wide > width) {
        lines.add(line.toString());
        line = new StringBuilder(indent).append("  ");
        length = indent.length() + 2;
      }
      line.append(isFirst ? "" : " ").append(words.group());
      length += (isFirst ? 0 : 1) + wide;
    }
    lines.add(line.toString());
    return lines;
  }

  /** A line as it is, with the blanks inside it, or in as many lines as it takes. */
  public static List<String> fitting(String text, int width) {
    return text.length() <= width ? List.of(text) : whole(text, width);
  }

  /** Two GPUs of one machine differ in the last characters of their names. */
  public static String cutInside(String text, int width) {
    int tail = width / 2;
    return text.length() <= width
        ? text
        : text.substring(0, width - tail - 1) + "…" + text.substring(text.length() - tail);
  }

  /** {@return a text without its end, where it is too wide} */
  public static String cut(String text, int width) {
    return text.length() <= width ? text : text.substring(0, width - 1) + "…";
  }
}
