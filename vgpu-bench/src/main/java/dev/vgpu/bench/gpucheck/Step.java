package dev.vgpu.bench.gpucheck;

/** One part of the check. */
interface Step {
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
