package dev.vgpu.bench.demo.load;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.bench.demo.child.Children;
import dev.vgpu.bench.demo.figure.RequestResult;
import dev.vgpu.bench.trace.Schedule;
import dev.vgpu.bench.trace.ScheduleFile;
import dev.vgpu.cli.console.Progress;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.time.NanoClock;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStreamWriter;
import java.net.URI;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The load generator as a process. Confined to one thread. */
public final class LoadProcess {
  /** The outcome of a schedule. */
  public record Outcome(long zeroNs, List<RequestResult> results) {}

  private static final String ENDED = "";
  private static final long POLL_MS = 250;
  private static final Duration LONGEST_WAIT = Duration.ofSeconds(90);

  private final Process process;
  private final Path directory;
  private final NanoClock clock;
  private final BufferedWriter commands;
  private final BlockingQueue<Reply> replies = new LinkedBlockingQueue<>();
  private Schedule prepared = new Schedule(List.of(), 1);
  private int runs;

  /** A line, and when it was received. */
  private record Reply(String line, long atNs) {}

  private LoadProcess(Process process, Path directory, NanoClock clock) {
    this.process = process;
    this.directory = directory;
    this.clock = clock;
    this.commands = new BufferedWriter(new OutputStreamWriter(process.getOutputStream(), UTF_8));
  }

  /**
   * Starts the load generator.
   *
   * @param children terminates the process
   * @param server where to send the requests
   * @param directory where to put its files
   * @param clock the clock
   */
  public static LoadProcess start(Children children, URI server, Path directory, NanoClock clock)
      throws UserException, IOException, InterruptedException {
    Process process =
        children.start(
            new ProcessBuilder(JavaCommand.loadGenerator(server.toString()))
                .redirectError(directory.resolve("load-generator.log").toFile()));
    LoadProcess load = new LoadProcess(process, directory, clock);
    Thread reader = new Thread(load::readReplies, "vgpu-load-output");
    reader.setDaemon(true);
    reader.start();
    load.await("READY", null, LONGEST_WAIT);
    return load;
  }

  /**
   * Prepares a schedule's requests for sending, and warms the connections.
   *
   * @param schedule the requests
   */
  public void prepare(Schedule schedule) throws UserException, IOException, InterruptedException {
    runs++;
    prepared = schedule;
    Path file = directory.resolve("schedule-" + runs + ".tsv");
    ScheduleFile.write(file, schedule);
    command("LOAD\t" + file);
    await("LOADED", null, LONGEST_WAIT);
  }

  /**
   * Sends the prepared requests and waits until all were answered or have failed.
   *
   * @param progress shows how much time has passed
   */
  public Outcome run(Progress progress) throws UserException, IOException, InterruptedException {
    Path file = directory.resolve("results-" + runs + ".txt");
    Duration length = Duration.ofNanos(prepared.lengthNs());
    command("RUN\t" + file);
    Reply started = await("STARTED", null, LONGEST_WAIT);
    await("DONE", new Ticker(progress, started.atNs(), length), length.plus(LONGEST_WAIT));
    return new Outcome(started.atNs(), RequestResult.read(file));
  }

  private void command(String line) throws IOException {
    commands.write(line + "\n");
    commands.flush();
  }

  private record Ticker(Progress progress, long startNs, Duration length) {
    void tick(long nowNs) {
      progress.tick(Math.min(nowNs - startNs, length.toNanos()), length);
    }
  }

  private Reply await(String word, @Nullable Ticker ticker, Duration longest)
      throws UserException, InterruptedException {
    long deadlineNs = clock.nowNs() + longest.toNanos();
    while (clock.nowNs() < deadlineNs) {
      Reply reply = replies.poll(POLL_MS, TimeUnit.MILLISECONDS);
      if (reply != null && reply.line().startsWith(word)) {
        return reply;
      }
      if (reply != null) {
        throw new UserException(
            reply.line().equals(ENDED)
                ? "the load generator ended unexpectedly; run again with --keep-logs and see "
                    + directory.resolve("load-generator.log")
                : "the load generator said '" + reply.line() + "' instead of " + word);
      }
      if (ticker != null) {
        ticker.tick(clock.nowNs());
      }
    }
    throw new UserException("the load generator was not done within " + longest.toSeconds() + " s");
  }

  private void readReplies() {
    try (BufferedReader reader =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      for (String line = reader.readLine(); line != null; line = reader.readLine()) {
        replies.add(new Reply(line, clock.nowNs()));
      }
    } catch (IOException e) {
      // The process has ended; reported below.
    }
    replies.add(new Reply(ENDED, clock.nowNs()));
  }
}
