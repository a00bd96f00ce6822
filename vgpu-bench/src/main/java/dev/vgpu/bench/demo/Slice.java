package dev.vgpu.bench.demo;

import dev.vgpu.bench.demo.figure.Phase;
import dev.vgpu.bench.demo.figure.Timing;
import dev.vgpu.bench.trace.Schedule;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;

/**
 * A part of a phase that runs without interruption. Phases to be compared are cut into slices that
 * alternate, so that drift of the machine affects them alike. Immutable.
 *
 * @param phase which phase
 * @param schedule the requests to send; empty for offline work alone
 */
public record Slice(Phase phase, Schedule schedule) {
  private static final List<Phase> COMPARED =
      List.of(Phase.ONLINE_ALONE, Phase.UNCONTROLLED, Phase.VGPU);

  /**
   * {@return all slices of a demo, in the order in which they run}
   *
   * @param timing how long each takes
   * @param online the online requests, which every compared phase sends
   * @param sixModels the requests to the six models
   */
  public static List<Slice> plan(Timing timing, Schedule online, Schedule sixModels) {
    List<Slice> slices = new ArrayList<>();
    List<Schedule> parts = online.slices(timing.rounds());
    for (int round = 0; round < timing.rounds(); round++) {
      List<Phase> order = new ArrayList<>(COMPARED);
      Collections.rotate(order, round);
      for (Phase phase : order) {
        slices.add(new Slice(phase, parts.get(round)));
      }
      if (round == 0) {
        slices.add(idle(Phase.OFFLINE_ALONE, timing.offlineAloneNs()));
      }
    }
    slices.add(idle(Phase.FIXED_SHARE, timing.sharesNs()));
    slices.add(idle(Phase.BURST_SHARE, timing.sharesNs()));
    slices.add(new Slice(Phase.SIX_MODELS, sixModels));
    return slices;
  }

  private static Slice idle(Phase phase, long lengthNs) {
    return new Slice(phase, new Schedule(List.of(), lengthNs));
  }
}
