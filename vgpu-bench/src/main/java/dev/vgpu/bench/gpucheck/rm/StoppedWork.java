package dev.vgpu.bench.gpucheck.rm;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;

/**
 * Stops the channels of a program that launches kernels all the time, and resumes them. Confined to
 * one thread.
 */
public final class StoppedWork {
  /** A kernel that was running may end, and be counted, so long after the stop. */
  private static final long SETTLE_MS = 50;

  private static final double RESUME_SECONDS = 5;

  /** The ioctl's error where a file is not the driver's. */
  private static final int ENOTTY = 25;

  private final Child program;
  private final Child caller;

  /**
   * Makes one.
   *
   * @param program runs the mode {@code channels} of the C program
   * @param caller makes the calls: the same program, or one in the mode {@code stop}
   */
  public StoppedWork(Child program, Child caller) {
    this.program = program;
    this.caller = caller;
  }

  /**
   * A call's outcome.
   *
   * @param status the driver's status; -1 if the ioctl failed
   * @param errno then, its error
   * @param line the whole answer
   */
  public record Outcome(long status, long errno, Answer line) {
    static Outcome of(Answer answer) {
      return new Outcome(answer.whole("status"), answer.whole("errno"), answer);
    }

    /** {@return whether the driver did it} */
    public boolean isDone() {
      return status == 0;
    }

    /** {@return whether the file belongs to no driver in the kernel} */
    public boolean isNoDriversFile() {
      return status == -1 && errno == ENOTTY;
    }

    /** {@return the outcome in words} */
    public String words() {
      return status == -1 ? "error " + errno : "status 0x" + Long.toHexString(status);
    }
  }

  /**
   * What a stop did.
   *
   * @param stop its outcome
   * @param resume that of resuming
   * @param kernels how many kernels ended while all was stopped
   * @param hasResumed whether kernels ended again
   */
  public record Trial(Outcome stop, Outcome resume, long kernels, boolean hasResumed) {
    /** {@return how long the calls of the stop took} */
    public double stopUs() {
      return stop.line().number("ns") / 1e3;
    }
  }

  /**
   * Stops, waits, and resumes.
   *
   * @param method {@code schedule}, {@code channels} or {@code foreign}
   * @param ms how long it waits
   * @return what happened
   * @throws InterruptedException if this thread is interrupted
   */
  public Trial attempt(String method, long ms) throws InterruptedException {
    Outcome stop = Outcome.of(caller.ask("off " + method));
    NanoClock.sleepMillis(SETTLE_MS);
    long before = kernels();
    NanoClock.sleepMillis(ms);
    long after = kernels();
    Outcome resume = Outcome.of(caller.ask("on " + method));
    return new Trial(stop, resume, after - before, hasMoreThan(after));
  }

  private boolean hasMoreThan(long kernels) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    while ((NanoClock.nanoTime() - beginNs) / 1e9 < RESUME_SECONDS) {
      if (kernels() > kernels) {
        return true;
      }
      NanoClock.sleepMillis(1);
    }
    return false;
  }

  private long kernels() throws InterruptedException {
    return program.ask("read").whole("kernels");
  }

  /**
   * Sets a time slice, reads it back, and restores it.
   *
   * @param us the time slice
   * @return the outcome, with {@code before_us} and {@code after_us}
   * @throws InterruptedException if this thread is interrupted
   */
  public Outcome slice(long us) throws InterruptedException {
    return Outcome.of(caller.ask("slice " + us));
  }

  /**
   * Preempts the program, which goes on at once.
   *
   * @param times how often
   * @return the outcome, with {@code p50_ns} and {@code max_ns}
   * @throws InterruptedException if this thread is interrupted
   */
  public Outcome preempt(int times) throws InterruptedException {
    return Outcome.of(caller.ask("preempt " + times));
  }
}
