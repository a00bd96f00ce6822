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

/** A training loop in a process of its own, and what it has got done. Confined to one thread. */
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
   * Starts one; it does not work yet.
   *
   * @param node where
   * @param environment what puts it under a virtual GPU, or not
   * @param name tells it from the others of the node
   * @param leastNs its shortest kernel
   * @param mostNs its longest kernel
   * @return the loop, after {@link #start}
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
   * Lets it work.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void start() throws InterruptedException {
    program.ask("start");
  }

  /**
   * Ends it and reads what it did.
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

  /** {@return the longest kernel it launched, in nanoseconds} */
  public long longestNs() {
    return longestNs;
  }

  /**
   * {@return the GPU time of the kernels that were done between two moments, in nanoseconds}
   *
   * @param fromNs a moment of {@code CLOCK_MONOTONIC}
   * @param toNs a later one
   */
  public double workNs(long fromNs, long toNs) {
    return workNsUntil(toNs) - workNsUntil(fromNs);
  }

  /** A line between the marks around the moment. */
  private double workNsUntil(long timeNs) {
    Map.Entry<Long, Long> before = workNsByTime.floorEntry(timeNs);
    Map.Entry<Long, Long> after = workNsByTime.higherEntry(timeNs);
    if (before == null) {
      return 0;
    }
    if (after == null) {
      return before.getValue();
    }
    // What runs at full speed just before its mark; the pause, if there was one, is before that.
    double sinceNs = (double) after.getValue() - (after.getKey() - timeNs);
    return Math.max(before.getValue(), sinceNs);
  }
}
