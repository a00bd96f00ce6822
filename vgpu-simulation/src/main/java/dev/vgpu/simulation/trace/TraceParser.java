package dev.vgpu.simulation.trace;

import java.io.BufferedReader;
import java.io.IOException;
import java.time.Duration;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoField;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Parses the format of the Azure LLM inference traces: the header line {@value #HEADER}, then one
 * line for each request, in the order of arrival.
 */
public final class TraceParser {
  /** The first line of a trace. */
  public static final String HEADER = "TIMESTAMP,ContextTokens,GeneratedTokens";

  private static final DateTimeFormatter TIMESTAMP =
      new DateTimeFormatterBuilder()
          .appendPattern("uuuu-MM-dd HH:mm:ss")
          .appendFraction(ChronoField.NANO_OF_SECOND, 0, 9, true)
          .toFormatter(Locale.ROOT);
  private static final int SHOWN_CHARACTERS = 60;
  private static final int MOST_CHARACTERS = 1_000;

  private final List<TraceRequest> requests = new ArrayList<>();
  private @Nullable LocalDateTime start;
  private int lineNumber;

  private TraceParser() {}

  /**
   * Parses a trace.
   *
   * @param name the name for people
   * @param reader its lines; is not closed
   * @return the trace
   * @throws TraceFormatException if a line is corrupt, or if there is no request
   * @throws IOException if it cannot be read
   */
  public static Trace parse(String name, BufferedReader reader)
      throws TraceFormatException, IOException {
    return new TraceParser().parseLines(name, reader);
  }

  private Trace parseLines(String name, BufferedReader reader)
      throws TraceFormatException, IOException {
    for (String line = readLine(reader); line != null; line = readLine(reader)) {
      if (lineNumber > 1) {
        parseRequest(line);
      } else if (!line.strip().equals(HEADER)) {
        throw corrupt("expected the header '" + HEADER + "', found " + quoted(line));
      }
    }
    if (start == null) {
      lineNumber++;
      throw corrupt(lineNumber == 1 ? "the file is empty" : "no request after the header");
    }
    return new Trace(name, start, requests);
  }

  /** Returns null at the end. Stops at a limit instead of reading on for a line end. */
  private @Nullable String readLine(BufferedReader reader)
      throws TraceFormatException, IOException {
    StringBuilder line = new StringBuilder();
    int next = reader.read();
    if (next < 0) {
      return null;
    }
    lineNumber++;
    for (; next >= 0 && next != '\n'; next = reader.read()) {
      if (line.length() == MOST_CHARACTERS) {
        throw corrupt("longer than " + MOST_CHARACTERS + " characters: " + quoted(line.toString()));
      }
      line.append((char) next);
    }
    return line.toString().stripTrailing();
  }

  private void parseRequest(String line) throws TraceFormatException {
    String[] columns = line.split(",", -1);
    if (columns.length != 3) {
      throw corrupt("expected 3 columns, found " + columns.length + " in " + quoted(line));
    }
    LocalDateTime time = timestamp(columns[0]);
    if (start == null) {
      start = time;
    }
    long arrivalNs = sinceStart(start, time);
    if (!requests.isEmpty() && arrivalNs < requests.get(requests.size() - 1).arrivalNs()) {
      throw corrupt("TIMESTAMP is before the line above: " + quoted(columns[0]));
    }
    requests.add(
        new TraceRequest(
            arrivalNs, count("ContextTokens", columns[1]), count("GeneratedTokens", columns[2])));
  }

  private LocalDateTime timestamp(String text) throws TraceFormatException {
    try {
      return LocalDateTime.parse(text.strip(), TIMESTAMP);
    } catch (DateTimeParseException e) {
      throw corrupt("TIMESTAMP is not of the form '2023-11-16 18:15:46.68': " + quoted(text));
    }
  }

  private long sinceStart(LocalDateTime first, LocalDateTime time) throws TraceFormatException {
    try {
      return Duration.between(first, time).toNanos();
    } catch (ArithmeticException e) {
      throw corrupt("TIMESTAMP is centuries after the first: " + time);
    }
  }

  private int count(String column, String text) throws TraceFormatException {
    try {
      int count = Integer.parseInt(text.strip());
      if (count >= 0) {
        return count;
      }
    } catch (NumberFormatException e) {
      // Reported below.
    }
    throw corrupt(column + " is not a whole number from 0 to 2147483647: " + quoted(text));
  }

  private TraceFormatException corrupt(String problem) {
    return new TraceFormatException(lineNumber, problem);
  }

  private static String quoted(String text) {
    String shown =
        text.length() > SHOWN_CHARACTERS ? text.substring(0, SHOWN_CHARACTERS) + "…" : text;
    return "'" + shown.replaceAll("\\p{Cntrl}", "?") + "'";
  }
}
