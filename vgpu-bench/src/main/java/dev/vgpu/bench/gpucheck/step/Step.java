package dev.vgpu.bench.gpucheck.step;

import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;

/** One part of the check. */
public interface Step {
  /**
   * Runs the step.
   *
   * @param place the paths of the check
   * @param findings receives the findings as they are made
   * @param quick whether to run the shortest form
   * @throws Exception if the step cannot be completed
   */
  void run(Place place, Findings findings, boolean quick) throws Exception;
}
