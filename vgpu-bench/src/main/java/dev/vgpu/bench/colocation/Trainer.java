package dev.vgpu.bench.colocation;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.NavigableMap;
import java.util.TreeMap;

/** A training loop in its own process, and its finished work. Confined to one thread. */
public final class Trainer {
  private final Child program;
  private final Path log;
  private final NavigableMap<Long, Long> workNsByTime = new TreeMap<>();
  private long longestNs;

  private Trainer(Child program, Path log) {
    this.program = program;
    this.log = log;
  }

  /**
   * Starts a loop that does not work yet.
   *
   * @param node the node on which it runs
   * @param environment puts it under a virtual GPU, or not
   * @param name distinguishes it from others of the node
   * @param leastNs its shortest kernel
   * @param mostNs its longest kernel
   * @return the loop; begins to work with {@link #start}
   * @throws InterruptedException if this thread is interrupted
   */
  public static Trainer open(
      Node node, Map<String, String> environment, String name, long leastNs, long mostNs)
      throws InterruptedException {
    Path log = node.file("train-" + name);
    Child program =
        node.start(
            environment,
            "train",
            Long.toString(leastNs),
            Long.toString(mostNs),
            Integer.toString(name.hashCode() & 0xffff),
            log.toString());
    return new Trainer(program.awaitReady(), log);
  }

  /** {@return the program's process} */
  public long pid() {
    return program.pid();
  }

  /**
   * Starts the work.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void start() throws InterruptedException {
    program.ask("start");
  }

  /**
   * Ends the loop and reads its marks.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void finish() throws InterruptedException {
    Answer answer = program.ask("finish");
    longestNs = answer.whole("longest_ns");
    program.awaitEnd();
    try {
      for (String line : Files.readAllLines(log)) {
        int space = line.indexOf(' ');
        workNsByTime.put(
            Long.parseLong(line.substring(0, space)), Long.parseLong(line.substring(space + 1)));
      }
      Files.delete(log);
    } catch (IOException e) {
      throw new UncheckedIOException("cannot read " + log, e);
    }
  }

  /** {@return the longest kernel that it launched, in nanoseconds} */
  public long longestNs() {
    return longestNs;
  }

  /**
   * {@return the GPU time of the kernels that ran between two moments, in nanoseconds}
   *
   * @param fromNs a moment of {@code CLOCK_MONOTONIC}
   * @param toNs a later one
   */
  public double workNs(long fromNs, long toNs) {
    return workNsUntil(toNs) - workNsUntil(fromNs);
  }

  /** Interpolates between the marks around the moment. */
  private double workNsUntil(long timeNs) {
    Map.Entry<Long, Long> before = workNsByTime.floorEntry(timeNs);
    Map.Entry<Long, Long> after = workNsByTime.higherEntry(timeNs);
    if (before == null) {
      return 0;
    }
    if (after == null) {
      return before.getValue();
    }
    // Assumes that the work before a mark ran at full speed, and that any pause came before it.
    double sinceNs = (double) after.getValue() - (after.getKey() - timeNs);
    return Math.max(before.getValue(), sinceNs);
  }
}
