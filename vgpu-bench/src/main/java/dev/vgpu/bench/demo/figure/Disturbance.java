package dev.vgpu.bench.demo.figure;

import dev.vgpu.bench.demo.child.Children;
import dev.vgpu.cli.machine.ProcessorTime;
import java.time.Duration;
import java.util.Optional;

/**
 * The processor time that others took while the demo measured. Immutable.
 *
 * @param otherPercent the part used by other programs, in percent of all processors
 * @param stolenPercent the part that the hypervisor withheld
 */
public record Disturbance(double otherPercent, double stolenPercent) {
  /** No disturbance, or none known. */
  static final Disturbance NONE = new Disturbance(0, 0);

  private static final double TOLERATED_PERCENT = 8;
  private static final double PERCENT = 100;

  /** {@return whether the disturbance makes the figures unreliable} */
  public boolean isLarge() {
    return otherPercent + stolenPercent > TOLERATED_PERCENT;
  }

  /** A reading of the counters at one moment. */
  public record Reading(Optional<ProcessorTime> machine, Duration own) {
    /** {@return the counters now} */
    public static Reading of(Children children) {
      return new Reading(ProcessorTime.read(), children.processorTime());
    }

    /** {@return what others took since an earlier reading} */
    public Disturbance since(Reading before) {
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
