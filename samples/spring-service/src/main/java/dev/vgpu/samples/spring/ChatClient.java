package dev.vgpu.samples.spring;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sends requests to the model {@code chat} of a running service. Confined to one thread. */
final class ChatClient implements AutoCloseable {
  private static final int OK = 200;
  private static final int CALIBRATION_REQUESTS = 64;
  private static final Pattern GPU_SECONDS =
      Pattern.compile("\"name\":\"chat\"[^}]*?\"gpuTimeSeconds\":([-+.0-9E]+)");

  private final HttpClient client = HttpClient.newHttpClient();
  private final ScheduledExecutorService sender = Executors.newScheduledThreadPool(1);
  private final URI url;
  private final Duration patience;

  /**
   * Creates a client.
   *
   * @param service the URL of the service
   * @param patience how long a request may take; after that, it has failed
   */
  ChatClient(URI service, Duration patience) {
    this.url = service.resolve("/models/chat");
    this.patience = patience;
  }

  /**
   * What became of the requests of a replay.
   *
   * @param latenciesMs of those that were answered, from the moment when they were due, sorted
   * @param failed how many were not answered, or with an error
   */
  record Answers(List<Double> latenciesMs, int failed) {
    static final Answers NONE = new Answers(List.of(), 0);

    double percentileMs(int percent) {
      return latenciesMs.isEmpty()
          ? Double.NaN
          : latenciesMs.get((latenciesMs.size() - 1) * percent / 100);
    }
  }

  /**
   * {@return the GPU time of a row in nanoseconds, as the service measures it while requests are
   * sent one after the other}
   *
   * @throws IOException if a request is not answered in time, or with an error: nothing is
   *     repeated, so the calibration always ends
   */
  double calibrate(ReplayTrace trace) throws IOException, InterruptedException {
    List<ReplayTrace.Request> requests = trace.first(CALIBRATION_REQUESTS, 1);
    send(requests); // the first requests compile the service's code, and open its connections
    double beganGpuSeconds = gpuSeconds();
    send(requests);
    double gpuSeconds = gpuSeconds() - beganGpuSeconds;
    if (gpuSeconds <= 0) {
      throw new IOException(url + " used no GPU time");
    }
    return gpuSeconds * 1e9 / ReplayTrace.rows(requests);
  }

  private void send(List<ReplayTrace.Request> requests) throws IOException, InterruptedException {
    for (ReplayTrace.Request request : requests) {
      HttpResponse<String> answer =
          client.send(post(request.rows()), HttpResponse.BodyHandlers.ofString());
      if (answer.statusCode() != OK) {
        throw new IOException(url + " answers " + answer.statusCode() + ": " + answer.body());
      }
    }
  }

  /**
   * {@return for how many seconds the model has used the GPU, as the service's actuator says}
   *
   * @throws IOException if the service does not say it
   */
  double gpuSeconds() throws IOException, InterruptedException {
    HttpRequest get =
        HttpRequest.newBuilder(url.resolve("/actuator/vgpu")).timeout(patience).build();
    String leases = client.send(get, HttpResponse.BodyHandlers.ofString()).body();
    Matcher chat = GPU_SECONDS.matcher(leases);
    if (!chat.find()) {
      throw new IOException(get.uri() + " does not list chat: " + leases);
    }
    return Double.parseDouble(chat.group(1));
  }

  /** Sends each request when it is due, whether or not earlier ones are answered. */
  @SuppressWarnings("FutureReturnValueIgnored") // the list of latencies tells
  Answers replay(List<ReplayTrace.Request> requests) {
    List<HttpRequest> posts = requests.stream().map(request -> post(request.rows())).toList();
    long beganNs = NanoClock.now();
    List<CompletableFuture<Double>> sent = new ArrayList<>();
    for (int i = 0; i < posts.size(); i++) {
      CompletableFuture<Double> latencyMs = new CompletableFuture<>();
      long dueNs = beganNs + requests.get(i).dueNs();
      HttpRequest post = posts.get(i);
      Runnable send =
          () ->
              client
                  .sendAsync(post, HttpResponse.BodyHandlers.discarding())
                  .thenApply(
                      answer ->
                          answer.statusCode() == OK ? (NanoClock.now() - dueNs) / 1e6 : Double.NaN)
                  .exceptionally(failure -> Double.NaN)
                  .thenAccept(latencyMs::complete);
      sender.schedule(send, dueNs - NanoClock.now(), TimeUnit.NANOSECONDS);
      sent.add(latencyMs);
    }
    List<Double> all = sent.stream().map(CompletableFuture::join).toList();
    List<Double> answered = all.stream().filter(ms -> !ms.isNaN()).sorted().toList();
    return new Answers(answered, all.size() - answered.size());
  }

  private HttpRequest post(int rows) {
    String row = "[0" + ",0.5".repeat(ServedModel.WIDTH - 1) + "]";
    return HttpRequest.newBuilder(url)
        .timeout(patience)
        .header("Content-Type", "application/json")
        .POST(HttpRequest.BodyPublishers.ofString("[" + row + ("," + row).repeat(rows - 1) + "]"))
        .build();
  }

  @Override
  public void close() {
    sender.shutdownNow();
  }
}
