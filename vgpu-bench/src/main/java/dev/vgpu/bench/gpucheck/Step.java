package dev.vgpu.bench.gpucheck;

/** One thing to find out. */
interface Step {
  /**
   * Finds it out.
   *
   * @param place where programs are
   * @param findings takes what is found, as it is found
   * @param quick the shortest form
   * @throws Exception if it cannot be found out
   */
  void run(Place place, Findings findings, boolean quick) throws Exception;
}
