package dev.vgpu.bench.demo.load;

import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.Objects.requireNonNull;

import dev.vgpu.bench.demo.figure.Latencies;
import dev.vgpu.bench.demo.figure.RequestResult;
import dev.vgpu.bench.trace.ScheduleFile;
import dev.vgpu.cli.time.NanoClock;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/**
 * Sends requests at their scheduled times, whether or not earlier ones were answered (an open
 * loop). It is a separate process, so that its work and its pauses do not affect the server. It
 * takes commands on standard input, one a line: {@code LOAD schedule-file} prepares the requests,
 * warms the connections, and answers {@code LOADED}. {@code RUN result-file} answers {@code
 * STARTED} at the schedule's zero, and {@code DONE ...} when every request was answered or has
 * failed. It exits when standard input closes.
 */
public final class LoadGenerator {
  private static final int WARM_CONNECTIONS = 8;
  private static final long LEAD_NS = 5_000_000;
  private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(60);
  private static final Duration CONNECT_TIMEOUT = Duration.ofSeconds(10);

  private final URI server;
  private final HttpClient client;
  private final NanoClock clock;
  private final PrintStream out;
  private final PrintStream errors;

  LoadGenerator(
      URI server, HttpClient client, NanoClock clock, PrintStream out, PrintStream errors) {
    this.server = requireNonNull(server, "server");
    this.client = requireNonNull(client, "client");
    this.clock = requireNonNull(clock, "clock");
    this.out = requireNonNull(out, "out");
    this.errors = requireNonNull(errors, "errors");
  }

  /**
   * Runs the load generator.
   *
   * @param args the server's address
   * @throws IOException if a file cannot be read or written
   * @throws InterruptedException if the main thread is interrupted
   */
  public static void main(String[] args) throws IOException, InterruptedException {
    ExecutorService executor =
        Executors.newSingleThreadExecutor(
            task -> {
              Thread thread = new Thread(task, "vgpu-load");
              thread.setDaemon(true);
              return thread;
            });
    HttpClient client =
        HttpClient.newBuilder()
            .version(HttpClient.Version.HTTP_1_1)
            .connectTimeout(CONNECT_TIMEOUT)
            .executor(executor)
            .build();
    PrintStream out = new PrintStream(System.out, true, UTF_8);
    LoadGenerator generator =
        new LoadGenerator(URI.create(args[0]), client, NanoClock.system(), out, System.err);
    generator.serve(new BufferedReader(new InputStreamReader(System.in, UTF_8)));
  }

  void serve(BufferedReader commands) throws IOException, InterruptedException {
    out.println("READY");
    List<ScheduleFile.Entry> entries = List.of();
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String[] words = line.split("\t", 2);
      if (words.length == 2 && words[0].equals("LOAD")) {
        entries = ScheduleFile.read(Path.of(words[1]));
        warmConnections();
        out.println("LOADED");
      } else if (words.length == 2 && words[0].equals("RUN")) {
        List<RequestResult> results = run(entries);
        RequestResult.write(Path.of(words[1]), results);
        out.println("DONE " + summary(results));
      } else {
        throw new IOException("not a command: '" + line + "'");
      }
    }
  }

  private List<RequestResult> run(List<ScheduleFile.Entry> entries) throws InterruptedException {
    RequestResult[] results = new RequestResult[entries.size()];
    CountDownLatch open = new CountDownLatch(results.length);
    long zeroNs = clock.nowNs() + LEAD_NS;
    clock.sleepUntil(zeroNs);
    out.println("STARTED");
    for (int i = 0; i < results.length; i++) {
      ScheduleFile.Entry entry = entries.get(i);
      HttpRequest request = request(entry);
      clock.sleepUntil(zeroNs + entry.arrivalNs());
      int index = i;
      long sentNs = clock.nowNs() - zeroNs;
      var unused =
          send(request)
              .thenAccept(
                  status -> {
                    long doneNs = clock.nowNs() - zeroNs;
                    results[index] =
                        new RequestResult(entry.arrivalNs(), sentNs, doneNs, status, entry.path());
                    open.countDown();
                  });
    }
    open.await();
    return Arrays.asList(results);
  }

  private HttpRequest request(ScheduleFile.Entry entry) {
    return HttpRequest.newBuilder(server.resolve(entry.path()))
        .timeout(REQUEST_TIMEOUT)
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofByteArray(entry.body()))
        .build();
  }

  /** Completes with the HTTP status, or with 0 if there was no answer. */
  private CompletableFuture<Integer> send(HttpRequest request) {
    return client
        .sendAsync(request, BodyHandlers.discarding())
        .handle(
            (response, failure) -> {
              if (failure != null) {
                errors.println(request.uri() + ": " + failure);
                return 0;
              }
              return response.statusCode();
            });
  }

  private void warmConnections() {
    HttpRequest request =
        HttpRequest.newBuilder(server.resolve("/healthz")).timeout(CONNECT_TIMEOUT).build();
    CompletableFuture<?>[] answers = new CompletableFuture<?>[WARM_CONNECTIONS];
    Arrays.setAll(answers, i -> send(request));
    CompletableFuture.allOf(answers).join();
  }

  private static String summary(List<RequestResult> results) {
    Latencies latencies = Latencies.of(results);
    return String.format(
        Locale.ROOT,
        "requests=%d failed=%d p50_ms=%.3f p99_ms=%.3f max_ms=%.3f",
        results.size(),
        latencies.failed(),
        latencies.percentileMs(50),
        latencies.percentileMs(99),
        latencies.maxMs());
  }
}
