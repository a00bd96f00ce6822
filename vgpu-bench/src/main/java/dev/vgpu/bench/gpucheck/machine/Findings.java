package dev.vgpu.bench.gpucheck.machine;

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
 * The findings of a step so far: figures, lines for people, and failures. They are in a file that
 * is complete at any time, so a step that is killed keeps its findings. Confined to one thread.
 */
public final class Findings {
  /** The key of the reason why a step does not apply to this machine. */
  static final String SKIPPED = "skipped";

  /** The key of figures outside their expected range, with the consequence. */
  public static final String UNEXPECTED = "unexpected";

  private static final ObjectMapper JSON = new ObjectMapper();

  private final Path file;
  private final ObjectNode root = JSON.createObjectNode();
  private final ObjectNode figures = root.putObject("figures");
  private final ArrayNode lines = root.putArray("lines");
  private final ArrayNode failures = root.putArray("failures");
  private final ArrayNode unexpected = root.putArray(UNEXPECTED);

  /** Writes empty findings. */
  public Findings(Path file) {
    this.file = file;
    write();
  }

  /**
   * {@return the object of figures at a path, created if it is missing; then call {@link #write}}
   */
  public ObjectNode at(String... path) {
    ObjectNode node = figures;
    for (String name : path) {
      node = node.withObjectProperty(name);
    }
    return node;
  }

  /** Adds a line for people. */
  public void line(String format, Object... arguments) {
    String line = String.format(Locale.ROOT, format, arguments);
    lines.add(line);
    System.out.println(line);
    write();
  }

  /** Adds a failure; the step goes on, and counts as failed. */
  public void failure(String format, Object... arguments) {
    String text = String.format(Locale.ROOT, format, arguments);
    failures.add(text);
    System.out.println("FAILED: " + text);
    write();
  }

  /**
   * Adds a figure with its expected range. A figure outside the range is no failure; it is reported
   * with its consequence.
   */
  public void expect(String what, double value, double least, double most, String decides) {
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

  /** Records why this step does not apply to this machine. */
  public void skip(String format, Object... arguments) {
    root.put(SKIPPED, String.format(Locale.ROOT, format, arguments));
    write();
  }

  /** Sets the step's line in the table. */
  public void summary(String format, Object... arguments) {
    root.put("summary", String.format(Locale.ROOT, format, arguments));
    write();
  }

  /** {@return whether anything failed so far} */
  public boolean hasFailures() {
    return !failures.isEmpty();
  }

  /** Writes the file. */
  public void write() {
    try {
      Path fresh = file.resolveSibling(file.getFileName() + ".new");
      Files.writeString(fresh, JSON.writeValueAsString(root), UTF_8);
      Files.move(fresh, file, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot write findings: file=" + file, e);
    }
  }

  /** {@return a number rounded for the JSON} */
  public static double rounded(double value, int decimals) {
    double factor = Math.pow(10, decimals);
    return Double.isFinite(value) ? Math.round(value * factor) / factor : 0;
  }
}
