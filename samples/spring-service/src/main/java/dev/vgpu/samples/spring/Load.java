package dev.vgpu.samples.spring;

import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Replays real arrivals at a running {@link ModelService}, in rounds: alone, beside a batch job of
 * this process, alone again, and beside the same job without a virtual GPU. Prints what the
 * requests and the job had in each, and where the GPU's time went.
 */
public final class Load {
  /** The part of the GPU's time that the requests take. */
  private static final double WANTED = 0.25;

  private static final int SECONDS = 8;
  private static final int ROUNDS = 5;
  private static final Duration PATIENCE = Duration.ofSeconds(15);

  private final ChatClient chat;
  private final ReplayTrace trace;
  private final long lengthNs;
  private List<ReplayTrace.Request> requests = List.of();

  Load(ChatClient chat, ReplayTrace trace, long lengthNs) {
    this.chat = chat;
    this.trace = trace;
    this.lengthNs = lengthNs;
  }

  /**
   * Runs the replay.
   *
   * @param arguments the trace; the seconds of one replay, {@value #SECONDS} if not given; the
   *     rounds, {@value #ROUNDS} if not given; the service's URL
   * @throws IOException if the trace cannot be read, or the service does not answer
   * @throws InterruptedException if it is interrupted
   */
  public static void main(String[] arguments) throws IOException, InterruptedException {
    if (arguments.length == 0) {
      System.err.println("usage: Load TRACE [SECONDS [ROUNDS [URL]]]");
      return;
    }
    ReplayTrace trace = ReplayTrace.read(Path.of(arguments[0]));
    int seconds = arguments.length > 1 ? Integer.parseInt(arguments[1]) : SECONDS;
    int rounds = arguments.length > 2 ? Integer.parseInt(arguments[2]) : ROUNDS;
    URI url = URI.create(arguments.length > 3 ? arguments[3] : "http://localhost:8080");
    try (ChatClient chat = new ChatClient(url, PATIENCE)) {
      Load load = new Load(chat, trace, TimeUnit.SECONDS.toNanos(seconds));
      load.calibrate();
      LoadReport report = new LoadReport();
      for (int round = 0; round < rounds; round++) {
        report.add(load.round());
      }
      report.print();
    } catch (ConnectException e) {
      throw new IOException("nothing listens at " + url + ": start ModelService first", e);
    }
  }

  /**
   * Finds out how many requests take the wanted part of the GPU's time, by the GPU time that the
   * service measures: first one after the other, then in a trial that is not counted.
   */
  void calibrate() throws IOException, InterruptedException {
    take(chat.calibrate(trace));
    take(gpuTimeOfRow(alone()));
  }

  /** Chooses the requests of the next round. */
  private void take(double rowNs) {
    requests = trace.taking(WANTED * lengthNs / rowNs, lengthNs);
  }

  private double gpuTimeOfRow(LoadReport.Phase phase) {
    return 1e9 * phase.chatGpuSeconds() / ReplayTrace.rows(requests);
  }

  List<ReplayTrace.Request> requests() {
    return requests;
  }

  private LoadReport.Round round() throws IOException, InterruptedException {
    LoadReport.Phase alone = alone();
    LoadReport.Phase jobAlone;
    LoadReport.Phase beside;
    try (BatchRows job = started(BatchRows::onVirtualGpu)) {
      jobAlone = jobAlone(job);
      beside = beside(job);
    }
    LoadReport.Phase aloneAgain = alone();
    LoadReport.Phase uncontrolled;
    try (BatchRows job = started(BatchRows::uncontrolled)) {
      uncontrolled = beside(job);
    }
    take((gpuTimeOfRow(alone) + gpuTimeOfRow(aloneAgain)) / 2); // it changes as code is compiled
    return new LoadReport.Round(alone, jobAlone, beside, aloneAgain, uncontrolled);
  }

  private static BatchRows started(Supplier<BatchRows> how) throws InterruptedException {
    BatchRows job = how.get();
    job.awaitFirst();
    return job;
  }

  private LoadReport.Phase alone() throws IOException, InterruptedException {
    double beganGpuSeconds = chat.gpuSeconds();
    long beganNs = NanoClock.now();
    ChatClient.Answers answers = chat.replay(requests);
    double seconds = (NanoClock.now() - beganNs) / 1e9;
    double gpuSeconds = chat.gpuSeconds() - beganGpuSeconds;
    return new LoadReport.Phase(seconds, answers, gpuSeconds, new BatchRows.Progress(0, 0, 0));
  }

  private LoadReport.Phase beside(BatchRows job) throws IOException, InterruptedException {
    BatchRows.Progress before = job.progress();
    LoadReport.Phase phase = alone();
    return phase.with(LoadReport.between(before, job.progress()));
  }

  private LoadReport.Phase jobAlone(BatchRows job) throws InterruptedException {
    long beganNs = NanoClock.now();
    BatchRows.Progress before = job.progress();
    BatchRows.Progress after = job.progressAfter(lengthNs / 2);
    return new LoadReport.Phase(
        (NanoClock.now() - beganNs) / 1e9,
        ChatClient.Answers.NONE,
        0,
        LoadReport.between(before, after));
  }
}
