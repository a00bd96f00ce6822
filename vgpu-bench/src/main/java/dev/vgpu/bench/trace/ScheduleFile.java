package dev.vgpu.bench.trace;

import static java.nio.charset.StandardCharsets.UTF_8;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A schedule in a file, for the load generator: one line for each request, {@code arrivalNs TAB
 * path TAB body}, with the complete body.
 */
public final class ScheduleFile {
  private static final ObjectMapper JSON = new ObjectMapper();

  private ScheduleFile() {}

  /**
   * A request with its complete body.
   *
   * @param arrivalNs when to send it, in nanoseconds since the schedule's start
   * @param path where to send it
   * @param body the JSON text in UTF-8
   */
  @SuppressWarnings("ArrayRecordComponent") // never compared
  public record Entry(long arrivalNs, String path, byte[] body) {}

  /**
   * Writes a schedule.
   *
   * @param file is created or replaced
   * @param schedule what to write
   * @throws IOException if it cannot be written
   */
  public static void write(Path file, Schedule schedule) throws IOException {
    try (BufferedWriter writer = Files.newBufferedWriter(file, UTF_8)) {
      for (ScheduledRequest request : schedule.requests()) {
        ObjectNode body = JSON.createObjectNode();
        request.texts().forEach(body.putArray("texts")::add);
        writer.write(request.arrivalNs() + "\t" + request.path() + "\t" + body);
        writer.newLine();
      }
    }
  }

  /**
   * Reads what {@link #write} wrote.
   *
   * @param file the file
   * @return the requests in the order of their arrival
   * @throws IOException if it cannot be read, or if a line is corrupt
   */
  public static List<Entry> read(Path file) throws IOException {
    List<Entry> entries = new ArrayList<>();
    try (BufferedReader reader = Files.newBufferedReader(file, UTF_8)) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        String[] columns = line.split("\t", 3);
        if (columns.length != 3) {
          throw new IOException(
              "schedule " + file + ", line " + (entries.size() + 1) + ": corrupt");
        }
        entries.add(new Entry(Long.parseLong(columns[0]), columns[1], columns[2].getBytes(UTF_8)));
      }
    }
    return entries;
  }
}
