package dev.vgpu.bench.gpucheck.rm;

import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * A program that competes for the GPU's time, with its channel groups recorded for {@code
 * vgpu-turns}; and another one, that reads the groups' time slices through its open file. Each
 * question has its own time limit. Confined to one thread.
 */
public final class Contender implements AutoCloseable {
  private static final double START_SECONDS = 8;
  private static final double ANSWER_SECONDS = 2;

  private final Path directory;
  private final Child program;
  private Child reader;

  private Contender(Path directory, Child program) {
    this.directory = directory;
    this.program = program;
    this.reader = program;
  }

  /**
   * How many kernels of a program have ended.
   *
   * @param nowNs when, by the program's clock
   * @param kernels since its start
   */
  public record Reading(long nowNs, long kernels) {
    /** {@return the kernels in a second since another reading} */
    public double rateSince(Reading before) {
      return (kernels - before.kernels) / ((nowNs - before.nowNs) / 1e9);
    }
  }

  /** Latencies of single kernels, in microseconds. */
  public record Latency(long kernels, boolean isLate, double p50Us, double p99Us, double worstUs) {
    static Latency of(Answer answer) {
      return new Latency(
          answer.whole("done"),
          answer.whole("late") != 0,
          answer.number("p50_ns") / 1e3,
          answer.number("p99_ns") / 1e3,
          answer.number("max_ns") / 1e3);
    }
  }

  /**
   * Starts one, and does not wait until it is ready.
   *
   * @param library {@code libvgpu_rm.so}
   * @param directory for its records; created
   * @throws IOException if the directory cannot be created
   */
  public static Contender start(
      CheckNode node, Path library, Path directory, Map<String, String> environment)
      throws IOException {
    Map<String, String> preloaded = new HashMap<>(environment);
    preloaded.put("LD_PRELOAD", library.toString());
    preloaded.put("VGPU_RM_EVENTS", directory.toString());
    Files.createDirectories(directory);
    return new Contender(directory, node.start(preloaded, "contend"));
  }

  /** {@return its process id} */
  public long pid() {
    return program.pid();
  }

  /** {@return the directory of its records} */
  public Path directory() {
    return directory;
  }

  /** Waits until it is ready. */
  public void awaitReady() throws InterruptedException {
    program.answer(START_SECONDS);
  }

  /** {@return what is recorded of it} */
  public GroupRecords records() throws IOException {
    return GroupRecords.read(directory);
  }

  /** Starts the program that reads its time slices, and does not wait until that is ready. */
  public void startReader(CheckNode node) throws IOException {
    Path handles = directory.resolve("handles");
    Files.writeString(handles, records().handles());
    reader = node.start(CheckNode.BARE, "stop", handles.toString(), Long.toString(pid()));
  }

  /** Waits for the program that reads its time slices. */
  public void awaitReader() throws InterruptedException {
    reader.answer(START_SECONDS);
  }

  /** {@return each group's handle, time slice in us, and level} */
  public String slices() throws InterruptedException {
    return reader.ask("slices", ANSWER_SECONDS).line().replaceFirst("^slices *", "");
  }

  /**
   * Sets the kernels' length, while nothing else is on the GPU.
   *
   * @param us the length
   * @return the outcome, with {@code loops}, {@code took_ns} and {@code fixed}
   */
  public Answer length(long us) throws InterruptedException {
    return program.ask("length " + us, START_SECONDS);
  }

  /** Sets the kernels' work. */
  public void loops(long loops) throws InterruptedException {
    program.ask("loops " + loops, ANSWER_SECONDS);
  }

  /** Starts to keep the GPU busy. */
  public void go() throws InterruptedException {
    program.ask("start", ANSWER_SECONDS);
  }

  /** Launches no more, and waits until all kernels have ended. */
  public void pause() throws InterruptedException {
    program.ask("pause", ANSWER_SECONDS);
    long beginNs = NanoClock.nanoTime();
    while (asked().whole("paused") == 0) {
      if ((NanoClock.nanoTime() - beginNs) / 1e9 > ANSWER_SECONDS) {
        throw new IllegalStateException("the kernels of process " + pid() + " do not end");
      }
      NanoClock.sleepMillis(2);
    }
  }

  private Answer asked() throws InterruptedException {
    Answer answer = program.ask("read", ANSWER_SECONDS);
    if (answer.whole("error") != 0) {
      throw new IllegalStateException("CUDA error in process " + pid() + ": " + answer.line());
    }
    return answer;
  }

  /** {@return how many kernels have ended} */
  public Reading read() throws InterruptedException {
    Answer answer = asked();
    return new Reading(answer.whole("now_ns"), answer.whole("kernels"));
  }

  /**
   * Runs single kernels, each after a rest, while this program is paused.
   *
   * @param limitMs for all of them
   */
  public Latency arrive(int times, int restUs, long limitMs) throws InterruptedException {
    String question = "arrive " + times + " " + restUs + " " + limitMs;
    return Latency.of(program.ask(question, limitMs / 1e3 + ANSWER_SECONDS));
  }

  /** Kills both; the driver frees channels that may still be stopped. */
  @Override
  public void close() {
    program.close();
    reader.close();
  }
}
