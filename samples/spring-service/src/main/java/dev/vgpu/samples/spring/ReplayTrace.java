package dev.vgpu.samples.spring;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.LocalDateTime;
import java.util.List;

/**
 * Requests of an Azure LLM inference trace (2023): when they arrived, and their prompts' tokens.
 * Immutable.
 */
record ReplayTrace(List<Request> requests) {
  /** How many tokens of a prompt one row of the model stands for. */
  private static final int TOKENS_OF_A_ROW = 32;

  /**
   * One request.
   *
   * @param dueNs when it arrives, since the first
   * @param rows how many rows it has
   */
  record Request(long dueNs, int rows) {}

  static ReplayTrace read(Path file) throws IOException {
    List<String[]> lines =
        Files.readAllLines(file).stream().skip(1).map(line -> line.split(",", -1)).toList();
    if (lines.isEmpty()) {
      throw new IOException("no requests in " + file);
    }
    LocalDateTime first = time(lines.get(0));
    return new ReplayTrace(
        lines.stream()
            .map(line -> new Request(Duration.between(first, time(line)).toNanos(), rows(line)))
            .toList());
  }

  private static LocalDateTime time(String[] line) {
    return LocalDateTime.parse(line[0].replace(' ', 'T'));
  }

  private static int rows(String[] line) {
    int rows = Integer.parseInt(line[1]) / TOKENS_OF_A_ROW;
    return Math.max(1, Math.min(ServedModel.MOST_ROWS, rows));
  }

  /**
   * {@return the first requests, sped up or slowed down so that they arrive in the given time}
   *
   * @param count at most this many, at least 1
   * @param lengthNs the time
   */
  List<Request> first(int count, long lengthNs) {
    List<Request> taken = requests.subList(0, Math.min(count, requests.size()));
    double scale = lengthNs / (taken.get(taken.size() - 1).dueNs() + 1.0);
    return taken.stream()
        .map(request -> new Request((long) (request.dueNs() * scale), request.rows()))
        .toList();
  }

  /**
   * {@return the first requests that together have as many rows, arriving in the given time}
   *
   * @param rows all requests, if they have fewer
   * @param lengthNs the time
   */
  List<Request> taking(double rows, long lengthNs) {
    int count = 0;
    for (double taken = 0; taken < rows && count < requests.size(); count++) {
      taken += requests.get(count).rows();
    }
    return first(Math.max(1, count), lengthNs);
  }

  /** {@return the rows of all these requests together} */
  static int rows(List<Request> requests) {
    return requests.stream().mapToInt(Request::rows).sum();
  }
}
