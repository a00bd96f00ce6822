package dev.vgpu.cli.console;

import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Breaks and shortens text for a terminal of {@value #WIDTH} columns or more. */
public final class Lines {
  /** The least width of a terminal, in columns. */
  public static final int WIDTH = 80;

  private static final int MOST_LINES = 3;

  /** A word; text inside colour markup is one word. */
  private static final Pattern WORD = Pattern.compile("(?:@\\|[^|]*\\|@|\\S)+");

  private static final Pattern MARKS = Pattern.compile("@\\|\\S+ |\\|@");

  private Lines() {}

  /** {@return a text as lines, at most three} */
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

  /** {@return a text as lines; colour markup has no width} */
  public static List<String> whole(String text) {
    return whole(text, WIDTH);
  }

  /** {@return a text as lines of another width; colour markup has no width} */
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

  /** {@return a line unchanged, with its inner blanks, if it fits; otherwise as several lines} */
  public static List<String> fitting(String text, int width) {
    return text.length() <= width ? List.of(text) : whole(text, width);
  }

  /** Shortens a name in its middle: two GPUs of a machine differ in their last characters. */
  public static String cutInside(String text, int width) {
    int tail = width / 2;
    return text.length() <= width
        ? text
        : text.substring(0, width - tail - 1) + "…" + text.substring(text.length() - tail);
  }

  /** {@return a text, without its end if it is too wide} */
  public static String cut(String text, int width) {
    return text.length() <= width ? text : text.substring(0, width - 1) + "…";
  }
}
