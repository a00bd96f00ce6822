package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;

/**
 * How long processes wait in a call, and how long they may: calls that need no turn hardly at all,
 * launches until their share comes round. What the machine lost of all processes' time is added,
 * and what was done to the seat meanwhile; while a program is stopped, no time passes for it.
 * Confined to one thread.
 */
final class Waits {
  private static final double MEMORY_MS = 250;
  private static final double WITNESS_MS = 500;
  private static final double LAUNCH_MS = 1_000;
  private static final double SYNC_MS = 500;

  /** The least share by which anything lost is paid back: that of the offline floor. */
  private static final double LEAST_PERCENT = 10;

  private final Child noise;
  private final Supplier<List<Long>> seats;
  private final Supplier<List<Long>> programs;
  private final RunDelays delays = new RunDelays();
  private final LostTime lost = new LostTime();
  private final LostTime late = new LostTime();
  private final LostTime seatLate = new LostTime();
  private final Map<String, Double> worstMs = new LinkedHashMap<>();
  private long beginNs = NanoClock.nanoTime();
  private long beforeNs = beginNs;

  /**
   * Of a node.
   *
   * @param noise tells how late this machine wakes up who sleeps
   * @param seats the processes that hold the seat, or stand by for it
   * @param programs the others that anybody may have to wait for
   */
  Waits(Child noise, Supplier<List<Long>> seats, Supplier<List<Long>> programs) {
    this.noise = noise;
    this.seats = seats;
    this.programs = programs;
  }

  /**
   * Begins the checks after a step.
   *
   * @param stepMs how long nobody could serve; who went by its own pace meanwhile has to make up
   *     for it
   */
  void begin(double stepMs) throws InterruptedException {
    beforeNs = beginNs;
    look(stepMs);
    beginNs = NanoClock.nanoTime();
  }

  private void look(double stepMs) throws InterruptedException {
    Answer answer = noise.ask("read");
    double ms = answer.number("sum_ns") / 1e6;
    delays.begin();
    ms += sumMs(seats.get());
    long nowNs = NanoClock.nanoTime();
    seatLate.add(nowNs, ms);
    ms += sumMs(programs.get());
    late.add(nowNs, ms);
    lost.add(nowNs, ms + stepMs);
    note("machine_late", answer.number("worst_ns") / 1e6);
    note("machine_lost", ms);
  }

  private double sumMs(List<Long> pids) {
    double ms = 0;
    for (long pid : pids) {
      ms += delays.ofMs(pid);
    }
    return ms;
  }

  /** {@return by how much the machine was late since then with what the seat does} */
  double seatLateMs(long sinceNs) throws InterruptedException {
    look(0);
    return seatLate.sinceMs(sinceNs);
  }

  /** {@return by how much the machine was late since then: of all processes' time} */
  double lateMs(long sinceNs) throws InterruptedException {
    look(0);
    return late.sinceMs(sinceNs);
  }

  void note(String what, double ms) {
    worstMs.merge(what, ms, Math::max);
  }

  Map<String, Double> worstMs() {
    return worstMs;
  }

  void checkWitness(Program program, Answer answer) throws InterruptedException {
    check(program, answer, "worst_launch_ns", "witness_launch", WITNESS_MS);
    check(program, answer, "worst_sync_ns", "witness_sync", WITNESS_MS);
    check(program, answer, "open_ns", "witness_open", WITNESS_MS);
  }

  void check(Program program, Answer answer) throws InterruptedException {
    check(program, answer, "memory_ns", "memory", MEMORY_MS);
    check(program, answer, "launch_ns", "launch", LAUNCH_MS);
    check(program, answer, "sync_ns", "sync", SYNC_MS);
    check(program, answer, "open_ns", "open", SYNC_MS);
  }

  /** A wait that ended after the last look, or lasts. */
  private void check(Program program, Answer answer, String number, String what, double limitMs)
      throws InterruptedException {
    double ms = answer.number(number) / 1e6;
    note(what + " " + program.tenant.name, ms);
    if (ms <= limitMs) {
      return;
    }
    look(0);
    long sinceNs = beforeNs - (long) (ms * 1e6);
    double times = 100 / Math.max(program.tenant.percent, LEAST_PERCENT);
    double backMs = lost.backMs(sinceNs, times);
    if (ms > limitMs + backMs) {
      throw new ChaosFailure(
          String.format(
              Locale.ROOT,
              "%s waited too long: %s %.1f ms, allowed %.1f ms and %.1f ms back (late by %.1f ms): %s",
              program,
              what,
              ms,
              limitMs,
              backMs,
              late.sinceMs(sinceNs),
              answer.line()));
    }
  }
}
