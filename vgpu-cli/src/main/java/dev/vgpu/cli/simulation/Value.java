package dev.vgpu.cli.simulation;

import dev.vgpu.cli.console.UserException;
import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;

/**
 * A value in a file, and its place. Each method that reads it reports errors with that place.
 * Immutable.
 *
 * @param source the file
 * @param node its place
 * @param what its key
 */
record Value(SourceText source, Node node, String what) {
  private static final Pattern TIME =
      Pattern.compile("([+-]?)(\\d{1,12}(?:\\.\\d{1,9})?)\\s*(ns|us|µs|ms|s|min|m|h)?");
  private static final long LONGEST_NS = 366L * 24 * 3_600 * 1_000_000_000L;

  UserException error(String problem) {
    return source.error(node, problem);
  }

  UserException error(String problem, Throwable cause) {
    return source.error(node, problem, cause);
  }

  boolean isScalar() {
    return node instanceof ScalarNode;
  }

  String text() throws UserException {
    if (node instanceof ScalarNode scalar && !scalar.getValue().isBlank()) {
      return scalar.getValue().strip();
    }
    throw error("'" + what + "' is not a word");
  }

  Section section(String named) throws UserException {
    if (node instanceof MappingNode mapping) {
      return new Section(source, mapping, named);
    }
    throw error("'" + what + "' is not a section of keys with values");
  }

  List<Value> list() throws UserException {
    if (!(node instanceof SequenceNode sequence)) {
      throw error("'" + what + "' is not a list");
    }
    List<Value> values = new ArrayList<>();
    for (Node each : sequence.getValue()) {
      values.add(new Value(source, each, what));
    }
    return values;
  }

  /** A time in nanoseconds, at least the given length. */
  long time(long leastNs) throws UserException {
    String text = text();
    Matcher matcher = TIME.matcher(text.toLowerCase(Locale.ROOT));
    if (!matcher.matches()) {
      throw error("not a time: '" + text + "' (write for example 500us, 20ms, 1.5s or 2m)");
    }
    double amount = Double.parseDouble(matcher.group(2));
    String unit = matcher.group(3);
    if (unit == null && amount != 0) {
      throw error("a time without a unit: '" + text + "' (write for example 500us, 20ms or 1.5s)");
    }
    if (matcher.group(1).equals("-") && amount != 0) {
      throw error("a time is negative: '" + what + "' is " + text);
    }
    double ns = amount * nanoseconds(unit == null ? "s" : unit);
    if (ns > LONGEST_NS) {
      throw error("a time is above a year: '" + what + "' is " + text);
    }
    if (Math.round(ns) < leastNs) {
      throw error(
          "a time is too short: '" + what + "' is " + text + ", at least " + Times.text(leastNs));
    }
    return Math.round(ns);
  }

  private static double nanoseconds(String unit) {
    return switch (unit) {
      case "ns" -> 1;
      case "us", "µs" -> 1e3;
      case "ms" -> 1e6;
      case "s" -> 1e9;
      case "m", "min" -> 60e9;
      default -> 3_600e9;
    };
  }

  int whole(int least, int most) throws UserException {
    String text = text();
    try {
      int number = Integer.parseInt(text.replace("_", ""));
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Reported below.
    }
    throw error(
        "'" + what + "' is not a whole number from " + least + " to " + most + ": '" + text + "'");
  }

  long anyWhole() throws UserException {
    String text = text();
    try {
      return Long.parseLong(text);
    } catch (NumberFormatException e) {
      throw error("'" + what + "' is not a whole number: '" + text + "'", e);
    }
  }

  double number(double least, double most) throws UserException {
    String text = text();
    try {
      double number = Double.parseDouble(text);
      if (number >= least && number <= most) {
        return number;
      }
    } catch (NumberFormatException e) {
      // Reported below.
    }
    throw error(
        String.format(
            Locale.ROOT, "'%s' is not a number from %s to %s: '%s'", what, least, most, text));
  }

  boolean yesOrNo() throws UserException {
    return word(Map.of("true", true, "false", false));
  }

  MemorySize memory() throws UserException {
    String text = text();
    try {
      return MemorySize.fromString(text);
    } catch (IllegalArgumentException e) {
      throw error("not a memory size: '" + text + "' (write for example 512MiB or 8GiB)", e);
    }
  }

  /** One of a set of words. */
  <T> T word(Map<String, T> words) throws UserException {
    String text = text().toLowerCase(Locale.ROOT).replace('_', '-');
    T meaning = words.get(text);
    if (meaning == null) {
      throw error(
          "'"
              + what
              + "' is not one of "
              + String.join(", ", words.keySet().stream().sorted().toList())
              + ": '"
              + text()
              + "'");
    }
    return meaning;
  }
}
