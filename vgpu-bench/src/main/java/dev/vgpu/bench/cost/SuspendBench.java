package dev.vgpu.bench.cost;

import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.Map;

/**
 * How long suspending and resuming a program take, by the memory that it holds: with the driver's
 * checkpoint, and by moving its allocations. Uses the emulator. Copies of the driver's checkpoint
 * take the time of 25 GB/s; moving really copies, at the speed of this machine's memory.
 */
public final class SuspendBench implements ProcessBench {
  private static final double GIB = 1 << 30;

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    report.line(
        "%-38s%14s%14s%14s%14s",
        "suspended, brought back; medians", "suspend ms", "per GiB", "resume ms", "per GiB");
    for (boolean movable : new boolean[] {false, true}) {
      String way = movable ? "moving" : "checkpoint";
      double[] least = null;
      for (int mebibytes : quick ? new int[] {64, 512} : new int[] {64, 512, 1024}) {
        report.progress("suspend by " + way + ", " + mebibytes + " MiB");
        double[] medians = measure(node, way, movable, mebibytes, quick ? 3 : 7);
        String key = way + "_" + mebibytes + "mib";
        least = least == null ? medians : least;
        double more = (mebibytes - 64) * (double) (1 << 20) / GIB;
        report.figure("suspend_ms", key, medians[0]);
        report.figure("resume_ms", key, medians[1]);
        report.line(
            "  %-36s%14.1f%14s%14.1f%14s",
            "by " + way + ", " + mebibytes + " MiB",
            medians[0],
            more == 0
                ? "-"
                : String.format(java.util.Locale.ROOT, "%.0f", (medians[0] - least[0]) / more),
            medians[1],
            more == 0
                ? "-"
                : String.format(java.util.Locale.ROOT, "%.0f", (medians[1] - least[1]) / more));
        if (more > 0) {
          report.figure("suspend_ms_per_gib", key, (medians[0] - least[0]) / more);
          report.figure("resume_ms_per_gib", key, (medians[1] - least[1]) / more);
        }
      }
    }
    report.line("  per GiB: what each GiB above 64 MiB adds");
  }

  private static double[] measure(Node node, String way, boolean movable, int mebibytes, int rounds)
      throws InterruptedException {
    try (PoolProcess pool = node.openPool()) {
      String name = way + mebibytes;
      Map<String, String> leased =
          pool.acquire(
              name,
              SharePolicy.BEST_EFFORT,
              0,
              PreemptionClass.OFFLINE,
              MemorySize.ofMebibytes(mebibytes + 1024L),
              movable ? "movable" : "fixed");
      Child program = node.start(leased, "hold", Integer.toString(mebibytes)).awaitReady();
      double[] suspendMs = new double[rounds];
      double[] resumeMs = new double[rounds];
      for (int i = 0; i < rounds; i++) {
        suspendMs[i] = pool.suspendMs(name);
        resumeMs[i] = pool.resumeMs(name);
      }
      if (program.ask("check").number("wrong") != 0) {
        throw new IllegalStateException("its memory has changed: " + way);
      }
      program.kill();
      pool.release(name);
      return new double[] {Report.median(suspendMs), Report.median(resumeMs)};
    }
  }
}
