package dev.vgpu.fleet.simulation;

import dev.vgpu.fleet.model.Request;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/** Counts and times decisions. Confined to one thread. */
final class Tally {
  private final String policy;
  private final LongSupplier clock;
  private DecisionTimes times = new DecisionTimes();
  private int asked;
  private int placed;
  private int severalAsked;
  private int severalPlaced;

  Tally(String policy, LongSupplier clock) {
    this.policy = policy;
    this.clock = clock;
  }

  /** Forgets all earlier decisions. */
  void restart() {
    times = new DecisionTimes();
    asked = 0;
    placed = 0;
    severalAsked = 0;
    severalPlaced = 0;
  }

  boolean decide(Request request, BooleanSupplier decision) {
    long begin = clock.getAsLong();
    boolean isPlaced = decision.getAsBoolean();
    times.add(clock.getAsLong() - begin);
    boolean several = request.shape().needsSeveral();
    asked++;
    placed += isPlaced ? 1 : 0;
    severalAsked += several ? 1 : 0;
    severalPlaced += several && isPlaced ? 1 : 0;
    return isPlaced;
  }

  Outcome outcome(double allocatedPercent) {
    return new Outcome(policy, allocatedPercent, asked, placed, severalAsked, severalPlaced, times);
  }
}
