package dev.vgpu.bench.colocation;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.time.LocalDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A trace of the Azure Public Dataset (2023, CC-BY 4.0), and the cost of its tokens. The cost is
 * that of a model whose mean request takes some milliseconds. The coding service's cost is half as
 * large. Thus its burst of 67 requests in one second is part of the replay at every load, and is
 * not slowed down.
 */
enum AzureTrace {
  /** A conversation service. */
  CONV("azure_llm_2023_conv_1840-1848.csv", 4_000, 25_000),
  /** A coding service, with bursts. */
  CODE("azure_llm_2023_code_1829-1837.csv", 2_000, 12_500);

  private final String resource;
  private final long promptTokenNs;
  private final long answerTokenNs;

  AzureTrace(String resource, long promptTokenNs, long answerTokenNs) {
    this.resource = resource;
    this.promptTokenNs = promptTokenNs;
    this.answerTokenNs = answerTokenNs;
  }

  /** {@return the word on the command line} */
  String word() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** {@return the cost of a token, in words} */
  String model() {
    return String.format(
        Locale.ROOT,
        "%.1f us of GPU time a prompt token, %.1f us a generated token",
        promptTokenNs / 1e3,
        answerTokenNs / 1e3);
  }

  /** {@return when the first request of the resource arrived} */
  LocalDateTime start() {
    try (BufferedReader reader = open()) {
      reader.readLine();
      return time(columns(reader.readLine()));
    } catch (IOException e) {
      throw new UncheckedIOException(resource, e);
    }
  }

  /** {@return its requests, in the order of their arrival} */
  List<Request> requests() {
    List<Request> requests = new ArrayList<>();
    LocalDateTime start = start();
    try (BufferedReader reader = open()) {
      reader.readLine();
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        String[] columns = columns(line);
        requests.add(
            new Request(
                Duration.between(start, time(columns)).toNanos(),
                Long.parseLong(columns[1]) * promptTokenNs,
                Long.parseLong(columns[2]) * answerTokenNs));
      }
    } catch (IOException e) {
      throw new UncheckedIOException(resource, e);
    }
    return requests;
  }

  private BufferedReader open() {
    InputStream stream = AzureTrace.class.getResourceAsStream(resource);
    return new BufferedReader(new InputStreamReader(requireNonNull(stream, resource), UTF_8));
  }

  private static String[] columns(String line) {
    String[] columns = line.split(",", -1);
    if (columns.length != 3) {
      throw new IllegalStateException("a trace in this jar is corrupt: " + line);
    }
    return columns;
  }

  private static LocalDateTime time(String[] columns) {
    return LocalDateTime.parse(columns[0].replace(' ', 'T'));
  }
}
