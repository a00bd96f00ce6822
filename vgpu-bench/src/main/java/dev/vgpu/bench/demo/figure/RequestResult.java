package dev.vgpu.bench.demo.figure;

import java.io.BufferedWriter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The outcome of one request. Immutable. Times are nanoseconds since the schedule's start.
 *
 * @param scheduledNs when it should have been sent; latency counts from here
 * @param sentNs when it was sent
 * @param doneNs when its answer was complete, or when it failed
 * @param status the HTTP status; 0 if there was no answer
 * @param path the path of the request
 */
public record RequestResult(long scheduledNs, long sentNs, long doneNs, int status, String path) {
  private static final int OK = 200;
  private static final int COLUMNS = 5;

  /** {@return whether the request succeeded} */
  boolean isOk() {
    return status == OK;
  }

  /** {@return the time from the scheduled arrival to the complete answer, in nanoseconds} */
  long latencyNs() {
    return doneNs - scheduledNs;
  }

  /** Writes one line for each request. */
  public static void write(Path file, List<RequestResult> results) throws IOException {
    try (BufferedWriter writer = Files.newBufferedWriter(file, StandardCharsets.UTF_8)) {
      for (RequestResult result : results) {
        writer.write(
            result.scheduledNs
                + " "
                + result.sentNs
                + " "
                + result.doneNs
                + " "
                + result.status
                + " "
                + result.path
                + "\n");
      }
    }
  }

  /** {@return the requests of a file that was written here} */
  public static List<RequestResult> read(Path file) throws IOException {
    List<RequestResult> results = new ArrayList<>();
    for (String line : Files.readAllLines(file, StandardCharsets.UTF_8)) {
      String[] columns = line.split(" ", COLUMNS);
      if (columns.length != COLUMNS) {
        throw new IOException("results " + file + ", line " + (results.size() + 1) + ": corrupt");
      }
      results.add(
          new RequestResult(
              Long.parseLong(columns[0]),
              Long.parseLong(columns[1]),
              Long.parseLong(columns[2]),
              Integer.parseInt(columns[3]),
              columns[4]));
    }
    return results;
  }
}
