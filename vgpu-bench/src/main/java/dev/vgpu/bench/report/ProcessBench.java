package dev.vgpu.bench.report;

import dev.vgpu.bench.harness.Node;

/** A benchmark with real processes on a separate node. */
public interface ProcessBench {
  /** Runs the benchmark; in a tenth of the time if quick. */
  void run(Node node, Report report, boolean quick) throws InterruptedException;
}
