package dev.vgpu.bench.gpucheck;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Locale;

/**
 * What a step has found so far, in a file that is whole at any time: figures, lines for people, and
 * failures. A step that is killed leaves what it had. Confined to one thread.
 */
final class Findings {
  /** Why this step has nothing to find out here. */
  static final String SKIPPED = "skipped";

  /** Figures that are not what vgpu was made for, with what follows from them. */
  static final String UNEXPECTED = "unexpected";

  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path file;
  private final ObjectNode root = JSON.createObjectNode();
  private final ObjectNode figures = root.putObject("figures");
  private final ArrayNode lines = root.putArray("lines");
  private final ArrayNode failures = root.putArray("failures");
  private final ArrayNode unexpected = root.putArray(UNEXPECTED);

  Findings(Path file) {
    this.file = file;
    write();
  }

  /**
   * {@return the object of figures at a path, made if it is not there; then call {@link #write}}
   */
  ObjectNode at(String... path) {
    ObjectNode node = figures;
    for (String name : path) {
      node = node.withObjectProperty(name);
    }
    return node;
  }

  /** Takes a line for people. */
  void line(String format, Object... arguments) {
    String line = String.format(Locale.ROOT, format, arguments);
    lines.add(line);
    System.out.println(line);
    write();
  }

  /** Takes a failure; the step goes on, and counts as failed. */
  void failure(String format, Object... arguments) {
    String text = String.format(Locale.ROOT, format, arguments);
    failures.add(text);
    System.out.println("FAILED: " + text);
    write();
  }

  /**
   * Takes a figure beside what is expected of it. One that is outside fails nothing, and is told
   * with what follows from it.
   */
  void expect(String what, double value, double least, double most, String decides) {
    String bounds = least == 0 ? "at most " + plain(most) : plain(least) + " to " + plain(most);
    if (value >= least && value <= most) {
      line("as expected: %s: %s (%s)", what, plain(value), bounds);
      return;
    }
    String text =
        String.format(
            Locale.ROOT, "%s: %s, expected %s; so %s", what, plain(value), bounds, decides);
    unexpected.add(text);
    System.out.println("UNEXPECTED: " + text);
    write();
  }

  private static String plain(double value) {
    return value == Math.rint(value)
        ? String.format(Locale.ROOT, "%.0f", value)
        : String.valueOf(rounded(value, 3));
  }

  /** Takes the reason for which this step finds nothing out on this machine. */
  void skip(String format, Object... arguments) {
    root.put(SKIPPED, String.format(Locale.ROOT, format, arguments));
    write();
  }

  /** The one line of this step in the table. */
  void summary(String format, Object... arguments) {
    root.put("summary", String.format(Locale.ROOT, format, arguments));
    write();
  }

  boolean hasFailures() {
    return !failures.isEmpty();
  }

  /** Writes all down. */
  void write() {
    try {
      Path fresh = file.resolveSibling(file.getFileName() + ".new");
      Files.writeString(fresh, JSON.writeValueAsString(root), UTF_8);
      Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write findings: file=" + file, e);
    }
  }

  /** {@return a number with so many decimals, as it shall stand in the JSON} */
  static double rounded(double value, int decimals) {
    double factor = Math.pow(10, decimals);
    return Double.isFinite(value) ? Math.round(value * factor) / factor : 0;
  }
}
