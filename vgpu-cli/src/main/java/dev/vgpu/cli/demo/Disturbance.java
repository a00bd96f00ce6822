package dev.vgpu.cli.demo;

import dev.vgpu.cli.machine.ProcessorTime;
import java.time.Duration;
import java.util.Optional;

/**
 * What others took of the processors while the demo was measured. Immutable.
 *
 * @param otherPercent what other programs used, of all processors
 * @param stolenPercent what the hypervisor withheld
 */
record Disturbance(double otherPercent, double stolenPercent) {
  /** Nothing, or nothing known. */
  static final Disturbance NONE = new Disturbance(0, 0);

  private static final double TOLERATED_PERCENT = 8;
  private static final double PERCENT = 100;

  /** {@return whether it was so much that the figures mean little} */
  boolean isLarge() {
    return otherPercent + stolenPercent > TOLERATED_PERCENT;
  }

  /** A moment. */
  record Reading(Optional<ProcessorTime> machine, Duration own) {
    static Reading of(Children children) {
      return new Reading(ProcessorTime.read(), children.processorTime());
    }

    /** {@return what others took since} */
    Disturbance since(Reading before) {
      if (machine.isEmpty() || before.machine.isEmpty()) {
        return NONE;
      }
      ProcessorTime spent = machine.get().since(before.machine.get());
      if (spent.allSeconds() <= 0) {
        return NONE;
      }
      double ownSeconds = own.minus(before.own).toMillis() / 1e3;
      double otherSeconds = Math.max(0, spent.busySeconds() - ownSeconds);
      return new Disturbance(
          PERCENT * otherSeconds / spent.allSeconds(),
          PERCENT * spent.stolenSeconds() / spent.allSeconds());
    }
  }
}
