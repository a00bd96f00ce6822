package dev.vgpu.samples.spring;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Replays real arrivals at a running {@link ModelService}: alone, then beside a batch job of this
 * process. Prints the latencies of both, and how much of the time that the requests leave the job
 * makes use of.
 */
public final class Load {
  /** The part of the time that the requests take, sent one after the other. */
  private static final double ASKED = 0.25;

  private static final int ROUNDS = 3;
  private static final Duration PATIENCE = Duration.ofSeconds(15);

  private Load() {}

  /**
   * Runs the replay.
   *
   * @param arguments the trace; the seconds of one replay, 15 if not given; the service's URL
   * @throws IOException if the trace cannot be read, or the service does not answer
   * @throws InterruptedException if it is interrupted
   */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    ReplayTrace trace = ReplayTrace.read(Path.of(arguments[0]));
    int seconds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : 15;
    URI url = URI.create(arguments.length > 2 ? arguments[2] : "http://localhost:8080");
    long lengthNs = TimeUnit.SECONDS.toNanos(seconds);
    try (ChatClient chat = new ChatClient(url, PATIENCE)) {
      double requestNs = chat.calibrate(trace);
      int count = (int) Math.max(1, ASKED * lengthNs / requestNs);
      List<ReplayTrace.Request> requests = trace.first(count, lengthNs);
      System.out.printf(
          Locale.ROOT,
          "a request takes %.2f ms alone; %d requests in %d s%n",
          requestNs / 1e6,
          requests.size(),
          seconds);
      ChatClient.Answers alone = new ChatClient.Answers(List.of(), 0);
      ChatClient.Answers beside = alone;
      double jobAlone = 0;
      double jobBeside = 0;
      double busy = 0;
      for (int round = 0; round < ROUNDS; round++) {
        alone = alone.and(chat.replay(requests));
        try (BatchRows job = BatchRows.start()) {
          jobAlone += job.rateFor(lengthNs / 3) / ROUNDS;
          long beganNs = NanoClock.now();
          double beganGpuSeconds = chat.gpuSeconds();
          long before = job.batches();
          beside = beside.and(chat.replay(requests));
          double passedSeconds = (NanoClock.now() - beganNs) / 1e9;
          jobBeside += (job.batches() - before) / passedSeconds / ROUNDS;
          busy += (chat.gpuSeconds() - beganGpuSeconds) / passedSeconds / ROUNDS;
        }
      }
      print(alone, "chat alone");
      print(beside, "chat beside the job");
      double ratio = beside.percentileMs(99) / alone.percentileMs(99);
      System.out.printf(Locale.ROOT, "p99 beside / alone: %.2f%n", ratio);
      System.out.printf(
          Locale.ROOT,
          "job: %.1f batches/s alone, %.1f beside chat, which uses %.0f %% of the GPU: %.0f %% of"
              + " what chat leaves%n",
          jobAlone,
          jobBeside,
          100 * busy,
          100 * jobBeside / (jobAlone * (1 - busy)));
    }
  }

  private static void print(ChatClient.Answers answers, String title) {
    System.out.printf(
        Locale.ROOT,
        "%-20s %d answered, %d failed, p50 %.1f ms, p99 %.1f ms%n",
        title,
        answers.latenciesMs().size(),
        answers.failed(),
        answers.percentileMs(50),
        answers.percentileMs(99));
  }
}
