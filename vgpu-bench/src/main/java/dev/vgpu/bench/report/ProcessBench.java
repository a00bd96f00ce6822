package dev.vgpu.bench.report;

import dev.vgpu.bench.harness.Node;

/** A benchmark with real processes on a node of its own. */
public interface ProcessBench {
  /** Runs it; in a tenth of the time where it shall be quick. */
  void run(Node node, Report report, boolean quick) throws InterruptedException;
}
