package dev.vgpu.bench.demo.figure;

import static java.util.Objects.requireNonNull;

import dev.vgpu.bench.trace.Replay;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;

/** All measurements of a demo. Immutable. */
public final class DemoResults {
  private final int loadPercent;
  private final Replay replay;
  private final Timing timing;
  private final Disturbance disturbance;
  private final Map<Phase, PhaseResult> phases;

  /** Takes the measurements of all phases. */
  public DemoResults(
      int loadPercent,
      Replay replay,
      Timing timing,
      Disturbance disturbance,
      List<SliceResult> slices) {
    this.loadPercent = loadPercent;
    this.replay = requireNonNull(replay, "replay");
    this.timing = requireNonNull(timing, "timing");
    this.disturbance = requireNonNull(disturbance, "disturbance");
    this.phases = new EnumMap<>(Phase.class);
    for (Phase phase : Phase.values()) {
      phases.put(
          phase, new PhaseResult(phase, slices.stream().filter(s -> s.phase() == phase).toList()));
    }
  }

  /** {@return the part of the device that the online requests were meant to use, in percent} */
  int loadPercent() {
    return loadPercent;
  }

  /** {@return the online requests} */
  Replay replay() {
    return replay;
  }

  /** {@return how long the demo's parts took} */
  Timing timing() {
    return timing;
  }

  /** {@return how much processor time other programs took meanwhile} */
  Disturbance disturbance() {
    return disturbance;
  }

  /** {@return the measurements of a phase} */
  public PhaseResult of(Phase phase) {
    return requireNonNull(phases.get(phase), "phase");
  }
}
