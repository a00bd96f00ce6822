package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.bench.harness.RunDelays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Checks how long processes wait in a call. Calls that need no turn must hardly wait; launches may
 * wait until their share comes round. Time that the machine or an action on the seat took from the
 * processes is allowed in addition; while a program is stopped, no time passes for it. Confined to
 * one thread.
 */
public final class Waits {
  private static final double MEMORY_MS = 250;
  private static final double WITNESS_MS = 500;
  private static final double LAUNCH_MS = 1_000;
  private static final double SYNC_MS = 500;

  /** The least share out of which lost time is paid back: the offline floor. */
  private static final double LEAST_PERCENT = 10;

  private final Machine machine;
  private final Supplier<List<Long>> seats;
  private final Supplier<List<Long>> programs;
  private final RunDelays delays = new RunDelays();
  private final LostTime lost = new LostTime();
  private final LostTime seatLate = new LostTime();
  private final Map<String, Double> worstMs = new LinkedHashMap<>();
  private long beginNs = NanoClock.nanoTime();
  private long beforeNs = beginNs;

  /**
   * Creates the checks for a node.
   *
   * @param machine tells how late the machine is
   * @param seats the processes that hold the seat, or stand by for it
   * @param programs the other processes that a process may have to wait for
   */
  Waits(Machine machine, Supplier<List<Long>> seats, Supplier<List<Long>> programs) {
    this.machine = machine;
    this.seats = seats;
    this.programs = programs;
  }

  /**
   * Begins the checks after a step.
   *
   * @param stepMs how long nothing could be served; a tenant that ran unscheduled meanwhile has to
   *     pay that time back
   */
  void begin(double stepMs) throws InterruptedException {
    beforeNs = beginNs;
    look(stepMs);
    beginNs = NanoClock.nanoTime();
  }

  private void look(double stepMs) throws InterruptedException {
    machine.look();
    delays.begin();
    double seatMs = mostMs(seats.get());
    // A process waits for the seat or for one other program at a time, and then to run itself.
    double lateMs = seatMs + 2 * mostMs(programs.get());
    long nowNs = NanoClock.nanoTime();
    seatLate.add(nowNs, seatMs);
    lost.add(nowNs, lateMs + stepMs);
    note("machine_late", machine.worstMs());
    note("processes_late", lateMs);
  }

  private double mostMs(List<Long> pids) {
    return pids.stream().mapToDouble(delays::ofMs).max().orElse(0);
  }

  /** {@return how late the machine and the seat's process ran since a moment, in milliseconds} */
  double seatLateMs(long sinceNs) throws InterruptedException {
    look(0);
    return seatLate.sinceMs(sinceNs) + machine.lateMs(sinceNs);
  }

  /** {@return the time that processes lost since a moment, in milliseconds} */
  double lostMs(long sinceNs) throws InterruptedException {
    look(0);
    return lost.sinceMs(sinceNs) + machine.lateMs(sinceNs);
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

  /** Checks a wait that ended after the last look, or still lasts. */
  private void check(Program program, Answer answer, String number, String what, double limitMs)
      throws InterruptedException {
    double ms = answer.number(number) / 1e6;
    note(what + " " + program.tenant.name, ms);
    if (ms <= limitMs) {
      return;
    }
    look(0);
    long sinceNs = beforeNs - (long) (ms * 1e6);
    double times = 100 / Math.max(program.leastPercent(), LEAST_PERCENT);
    double backMs = lost.backMs(sinceNs, times) + machine.look().backMs(sinceNs, times);
    if (ms > limitMs + backMs) {
      throw new ChaosFailure(
          String.format(
              Locale.ROOT,
              "%s waited too long: %s %.1f ms, allowed %.1f + %.1f ms (lost %.1f ms): %s",
              program,
              what,
              ms,
              limitMs,
              backMs,
              lostMs(sinceNs),
              answer.line()));
    }
  }
}
