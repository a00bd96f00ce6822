package dev.vgpu.bench.chaos;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/**
 * How long processes wait in a call, and how long they may: calls that need no turn hardly at all,
 * launches until their share comes round. What this machine is late by is added, and what was done
 * to the seat meanwhile; while a program is stopped, no time passes for it. Confined to one thread.
 */
final class Waits {
  private static final double MEMORY_MS = 250;
  private static final double WITNESS_MS = 500;
  private static final double LAUNCH_MS = 1_000;
  private static final double SYNC_MS = 500;

  /** A call may be put off as often as that by a machine that is late. */
  private static final double LATE_TIMES = 10;

  /**
   * Who had the GPU to itself while the seat stood still pays that back out of its share; offline
   * tenants out of their floor.
   */
  private static final double LEAST_PERCENT = 10;

  /** How much of it counts in the next step still. */
  private static final double CARRIED = 0.7;

  private final Child noise;
  private final Map<String, Double> worstMs = new LinkedHashMap<>();
  private double lateMs;
  private double earlierMs;

  Waits(Child noise) {
    this.noise = noise;
  }

  /**
   * Begins the checks after a step.
   *
   * @param stepMs how long nobody could serve; a call that waited then may end in the next step,
   *     and who went by its own pace meanwhile may have to make up for it
   */
  void begin(double stepMs) throws InterruptedException {
    lateMs = noise.ask("read").number("worst_ns") / 1e6;
    earlierMs = Math.max(earlierMs * CARRIED, stepMs);
    note("machine_late", lateMs);
  }

  double lateMs() {
    return lateMs;
  }

  void note(String what, double ms) {
    worstMs.merge(what, ms, Math::max);
  }

  Map<String, Double> worstMs() {
    return worstMs;
  }

  void checkWitness(Program program, Answer answer) {
    check(program, answer, "worst_launch_ns", "witness_launch", WITNESS_MS);
    check(program, answer, "worst_sync_ns", "witness_sync", WITNESS_MS);
    check(program, answer, "open_ns", "witness_open", WITNESS_MS);
  }

  void check(Program program, Answer answer) {
    check(program, answer, "memory_ns", "memory", MEMORY_MS);
    check(program, answer, "launch_ns", "launch", LAUNCH_MS);
    check(program, answer, "sync_ns", "sync", SYNC_MS);
    check(program, answer, "open_ns", "open", SYNC_MS);
  }

  private void check(Program program, Answer answer, String number, String what, double limitMs) {
    double ms = answer.number(number) / 1e6;
    double backMs = earlierMs * 100 / Math.max(program.tenant.percent, LEAST_PERCENT);
    double allowedMs = limitMs + backMs + LATE_TIMES * lateMs;
    if (ms > allowedMs) {
      throw new ChaosFailure(
          String.format(
              Locale.ROOT,
              "%s waited too long: %s %.1f ms, allowed %.1f ms (machine late by %.1f ms): %s",
              program,
              what,
              ms,
              allowedMs,
              lateMs,
              answer.line()));
    }
    note(what + " " + program.tenant.name, ms);
  }
}
