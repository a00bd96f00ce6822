package dev.vgpu.bench.harness;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A child process with a dialogue in lines. It ends when its standard input is closed, so no child
 * outlives this process, unless the child is stopped. Confined to one thread.
 */
public final class Child implements AutoCloseable {
  /** A child that gives no answer for this long counts as hanging, unless the machine is late. */
  public static final Duration PATIENCE = Duration.ofSeconds(30);

  /** A machine that does not run a thread, or does not end one, is waited for up to this limit. */
  private static final int MOST_TIMES = 5;

  /** Marks the end of its output. */
  private static final String END = "\n";

  private final String name;
  private final Process process;
  private final Lateness lateness;
  private final Writer input;
  private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

  Child(String name, ProcessBuilder builder, Lateness lateness) {
    this.name = name;
    this.lateness = lateness;
    try {
      this.process = builder.start();
    } catch (IOException e) {
      throw new UncheckedIOException("cannot start " + builder.command(), e);
    }
    this.input = process.outputWriter(UTF_8);
    Thread reader = new Thread(this::read, "read-" + name);
    reader.setDaemon(true);
    reader.start();
  }

  private void read() {
    try (BufferedReader output =
        new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8))) {
      for (String line = output.readLine(); line != null; line = output.readLine()) {
        lines.add(line);
      }
    } catch (IOException e) {
      // The child was killed.
    }
    lines.add(END);
  }

  /** {@return its process id} */
  public long pid() {
    return process.pid();
  }

  /** {@return whether it is alive} */
  public boolean isAlive() {
    return process.isAlive();
  }

  /**
   * Sends it a line.
   *
   * @param line what to send
   */
  public void tell(String line) {
    try {
      input.write(line + "\n");
      input.flush();
    } catch (IOException e) {
      throw new IllegalStateException(name + " has ended; sent: " + line, e);
    }
  }

  /**
   * {@return its next line} Waits for it.
   *
   * @throws IllegalStateException if it has ended, or prints nothing for a long time
   * @throws InterruptedException if this thread is interrupted
   */
  public String line() throws InterruptedException {
    return unlessEnded(next());
  }

  private String unlessEnded(String next) {
    if (next.equals(END)) {
      throw new IllegalStateException(name + " has ended: pid=" + pid());
    }
    return next;
  }

  private String next() throws InterruptedException {
    @Nullable String next = lines.poll(1, TimeUnit.SECONDS);
    if (next != null) {
      return next;
    }
    Wait wait = new Wait();
    do {
      if (wait.isOver()) {
        throw new IllegalStateException(name + " hangs: " + threads());
      }
      next = lines.poll(1, TimeUnit.SECONDS);
    } while (next == null);
    return next;
  }

  /** A wait for the child that has already taken a second: most take none, and count nothing. */
  private final class Wait {
    private final long beginNs = NanoClock.nanoTime();
    private final RunDelays delays = new RunDelays();

    Wait() {
      delays.ofMs(pid());
      delays.begin();
    }

    /** Whether the child had long enough, without the time in which the machine did not run it. */
    boolean isOver() throws InterruptedException {
      double ms = (NanoClock.nanoTime() - beginNs) / 1e6;
      if (ms <= PATIENCE.toMillis() + lateness.lateMs(beginNs) + delays.ofMs(pid())) {
        return false;
      }
      RunDelays look = new RunDelays();
      look.ofMs(pid());
      NanoClock.sleepMillis(1_000);
      boolean isTheMachines = look.isLeftStanding(pid()) || RunDelays.hasEnded(pid());
      return ms > MOST_TIMES * PATIENCE.toMillis() || !isTheMachines;
    }
  }

  private String threads() {
    return "pid=" + pid() + ", its threads are " + RunDelays.states(pid());
  }

  /**
   * Sends it a line and waits for its answer.
   *
   * @param line what to send
   * @return the answer
   * @throws InterruptedException if this thread is interrupted
   */
  public Answer ask(String line) throws InterruptedException {
    tell(line);
    return answer();
  }

  /**
   * Sends it a line and waits for its answer, which may take only so long.
   *
   * @param line what to send
   * @param seconds the longest wait
   * @return the answer
   * @throws IllegalStateException also if there is no answer in time
   * @throws InterruptedException if this thread is interrupted
   */
  public Answer ask(String line, double seconds) throws InterruptedException {
    tell(line);
    return answer(seconds);
  }

  /**
   * {@return its next line, parsed} The line may take only so long.
   *
   * @param seconds the longest wait
   * @throws IllegalStateException if the line is an error, or is late
   * @throws InterruptedException if this thread is interrupted
   */
  public Answer answer(double seconds) throws InterruptedException {
    @Nullable String next = lines.poll((long) (seconds * 1e3), TimeUnit.MILLISECONDS);
    if (next == null) {
      throw new IllegalStateException(
          String.format(Locale.ROOT, "%s says nothing for %.1f s: %s", name, seconds, threads()));
    }
    return parsed(next);
  }

  /**
   * {@return its next line, parsed}
   *
   * @throws IllegalStateException if the line is an error
   * @throws InterruptedException if this thread is interrupted
   */
  public Answer answer() throws InterruptedException {
    return parsed(next());
  }

  private Answer parsed(String next) {
    String line = unlessEnded(next);
    if (line.startsWith("error ")) {
      throw new IllegalStateException(name + ": " + line);
    }
    return Answer.fromLine(line);
  }

  /**
   * Waits until it is ready.
   *
   * @return this child
   * @throws InterruptedException if this thread is interrupted
   */
  public Child awaitReady() throws InterruptedException {
    Answer answer = answer();
    if (!answer.line().equals("ready")) {
      throw new IllegalStateException(name + " is not ready: " + answer.line());
    }
    return this;
  }

  /**
   * Sends it a signal.
   *
   * @param signal its name, without SIG
   */
  public void signal(String signal) {
    Signals.send(pid(), signal);
  }

  /**
   * Kills it with SIGKILL and waits until it has ended.
   *
   * @throws InterruptedException if this thread is interrupted
   */
  public void kill() throws InterruptedException {
    process.destroyForcibly();
    awaitEnd();
  }

  /**
   * {@return its exit code} Waits for its end.
   *
   * @throws IllegalStateException if it does not end
   * @throws InterruptedException if this thread is interrupted
   */
  public int awaitEnd() throws InterruptedException {
    if (!process.waitFor(1, TimeUnit.SECONDS)) {
      Wait wait = new Wait();
      while (!process.waitFor(1, TimeUnit.SECONDS)) {
        if (wait.isOver()) {
          throw new IllegalStateException(name + " does not end: " + threads());
        }
      }
    }
    return process.exitValue();
  }

  /** Kills it and waits until it has ended, or until this thread is interrupted. */
  @Override
  public void close() {
    process.destroyForcibly();
    try {
      process.waitFor();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  @Override
  public String toString() {
    return name + "[" + pid() + "]";
  }
}
