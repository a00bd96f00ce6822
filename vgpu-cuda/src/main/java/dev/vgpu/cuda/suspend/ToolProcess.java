package dev.vgpu.cuda.suspend;

import dev.vgpu.cuda.process.NanoClock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** Runs a short program until it exits or its timeout passes. Immutable. */
final class ToolProcess {
  private static final int MOST_TEXT = 4_096;

  /** Would put the program itself under a virtual GPU, or hide GPUs from it. */
  private static final List<String> NOT_PASSED_ON = List.of("LD_PRELOAD", "CUDA_VISIBLE_DEVICES");

  private final String program;
  private final Map<String, String> environment;

  ToolProcess(String program, Map<String, String> environment) {
    this.program = program;
    this.environment = Map.copyOf(environment);
  }

  /**
   * The result of a run.
   *
   * @param exitCode its exit code; meaningless if it was killed
   * @param out its standard output
   * @param err its standard error
   * @param killed whether it exceeded its timeout
   */
  record Outcome(int exitCode, String out, String err, boolean killed) {
    boolean isDone() {
      return !killed && exitCode == 0;
    }

    /** {@return the program's own error text, else its exit code} */
    String reason() {
      String text = (err + " " + out).strip();
      return text.isEmpty() ? "exit code " + exitCode : text;
    }
  }

  String program() {
    return program;
  }

  /**
   * {@return the result of the run} Not interruptible, because a step must not be left half done.
   * If the calling thread is interrupted, its interrupt status is set again at the end.
   *
   * @param timeoutNs the program is killed after this time
   * @param arguments the program's arguments
   * @throws UncheckedIOException if the program cannot be started
   */
  Outcome run(long timeoutNs, String... arguments) {
    List<String> command = new ArrayList<>(List.of(program));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command);
    NOT_PASSED_ON.forEach(builder.environment()::remove);
    builder.environment().putAll(environment);
    Process process;
    try {
      process = builder.start();
      process.getOutputStream().close();
    } catch (IOException e) {
      throw new UncheckedIOException(e.getMessage(), e);
    }
    boolean ended = hasEnded(process, timeoutNs);
    if (!ended) {
      process.destroyForcibly();
      boolean ignored = hasEnded(process, TimeUnit.SECONDS.toNanos(1));
      return new Outcome(0, "", "it took longer than " + timeoutNs / 1_000_000 + " ms", true);
    }
    try {
      return new Outcome(
          process.exitValue(),
          text(process.getInputStream().readNBytes(MOST_TEXT)),
          text(process.getErrorStream().readNBytes(MOST_TEXT)),
          false);
    } catch (IOException e) {
      return new Outcome(process.exitValue(), "", e.getMessage() + "", false);
    }
  }

  private static String text(byte[] bytes) {
    return new String(bytes, StandardCharsets.UTF_8).strip();
  }

  private static boolean hasEnded(Process process, long timeoutNs) {
    boolean interrupted = false;
    long leftNs = timeoutNs;
    long startNs = NanoClock.SYSTEM.nanoTime();
    try {
      while (true) {
        try {
          return process.waitFor(Math.max(0, leftNs), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
          leftNs = timeoutNs - (NanoClock.SYSTEM.nanoTime() - startNs);
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
