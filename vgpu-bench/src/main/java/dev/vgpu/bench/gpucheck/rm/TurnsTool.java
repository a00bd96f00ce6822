package dev.vgpu.bench.gpucheck.rm;

import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.Signals;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A running {@code vgpu-turns}: its guardian and its worker. Confined to one thread. */
public final class TurnsTool implements AutoCloseable {
  private static final double ANSWER_SECONDS = 4;
  private static final double END_SECONDS = 2;

  private final Child guardian;

  private TurnsTool(Child guardian) {
    this.guardian = guardian;
  }

  /**
   * Starts it.
   *
   * @param tool the program
   * @param errors the file to which its standard error is added
   * @param tenants its arguments
   */
  public static TurnsTool start(CheckNode node, Path tool, Path errors, List<String> tenants) {
    List<String> command =
        new ArrayList<>(
            List.of("sh", "-c", "exec \"$@\" 2>>\"$0\"", errors.toString(), tool.toString()));
    command.addAll(tenants);
    return new TurnsTool(node.start("vgpu-turns", command, CheckNode.BARE));
  }

  /** {@return the end of what it wrote on its standard error} */
  public static String errors(Path file) {
    List<String> lines = Outcome.linesOf(file);
    return String.join(" | ", lines.subList(Math.max(0, lines.size() - 5), lines.size()));
  }

  /** {@return its next line; it comes at the start, and when everything has been given back} */
  public Answer answer() throws InterruptedException {
    return guardian.answer(ANSWER_SECONDS);
  }

  /**
   * Tells it that online tenants have work.
   *
   * @param ms for how long at most; 0: they have none
   */
  public Answer online(int ms) throws InterruptedException {
    return guardian.ask("online " + ms, ANSWER_SECONDS);
  }

  /** Sends SIGTERM; returns what it says when it has given everything back. */
  public Answer terminate() throws InterruptedException {
    guardian.signal("TERM");
    Answer answer = answer();
    awaitEnd();
    return answer;
  }

  /** Kills the worker; the guardian gives everything back. */
  public void killWorker() {
    long worker =
        ProcessHandle.of(guardian.pid()).stream()
            .flatMap(ProcessHandle::children)
            .mapToLong(ProcessHandle::pid)
            .findFirst()
            .orElseThrow(() -> new IllegalStateException("vgpu-turns has no worker"));
    Signals.send(worker, "KILL");
  }

  /** Waits for its end. */
  public void awaitEnd() throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    while (guardian.isAlive()) {
      if ((NanoClock.nanoTime() - beginNs) / 1e9 > END_SECONDS) {
        throw new IllegalStateException("vgpu-turns does not end");
      }
      NanoClock.sleepMillis(2);
    }
  }

  /** Ends it if it still runs: the worker gives back before, and ends with the guardian. */
  @Override
  public void close() {
    if (guardian.isAlive()) {
      guardian.signal("TERM");
    }
    try {
      awaitEnd();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (IllegalStateException e) {
      guardian.close();
    }
  }
}
