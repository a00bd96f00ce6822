package dev.vgpu.bench;

import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * How long a death or a stop of one process holds others up: processes of other virtual GPUs and of
 * the same one launch short kernels, while others are killed and stopped at random moments,
 * start-up included. Beside it: the same undisturbed, the same bare, and this machine's lateness.
 */
final class StallBench implements ProcessBench {
  private static final int EVENTS = 200;
  private static final int QUICK_EVENTS = 20;
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(2);
  private static final double TARGET_ADDED_MS = 20;

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    int events = quick ? QUICK_EVENTS : EVENTS;
    try (PoolProcess pool = node.openPool()) {
      List<Map<String, String>> places = new ArrayList<>();
      for (String name : List.of("first", "second", "struck", "gone")) {
        places.add(
            pool.acquire(name, SharePolicy.BURST_SHARE, 25, PreemptionClass.NEARLINE, QUOTA));
      }
      // One of the survivors has a virtual GPU together with one that is killed.
      List<Map<String, String>> survivors = places.subList(0, 3);
      List<Map<String, String>> victims = places.subList(2, 4);
      report.line(
          "%-38s%14s%14s%14s%14s%14s",
          "worst stall of others, ms", "launch", "sync", "worst", "kernels/s", "machine");
      Disturbed hooked = new Disturbed(node, survivors, victims);
      Disturbed.Reading undisturbed = hooked.phase(report, "undisturbed", 0, events);
      Disturbed.Reading disturbed = hooked.phase(report, "disturbed", events, events);
      hooked.close();
      long leftMs = Leftovers.awaitNone(pool);
      Disturbed bare =
          new Disturbed(
              node,
              survivors.stream().map(Node::bare).toList(),
              victims.stream().map(Node::bare).toList());
      Disturbed.Reading bareUndisturbed = bare.phase(report, "bare, undisturbed", 0, events / 4);
      Disturbed.Reading bareDisturbed =
          bare.phase(report, "bare, disturbed", events / 4, events / 4);
      bare.close();
      report.line(
          "  %d processes killed or stopped; all bytes back %d ms after the last", events, leftMs);
      report.line(
          "  added: %.1f ms; target: <= %.0f ms above the same program undisturbed",
          Math.max(0, disturbed.worstMs() - undisturbed.worstMs()), TARGET_ADDED_MS);
      report.figure("worst_stall_ms", disturbed.worstMs());
      report.figure("worst_stall_undisturbed_ms", undisturbed.worstMs());
      report.figure("worst_stall_bare_ms", bareDisturbed.worstMs());
      report.figure("worst_stall_bare_undisturbed_ms", bareUndisturbed.worstMs());
      report.figure("worst_stall_added_ms", disturbed.addedMs(undisturbed));
      report.figure("worst_stall_bare_added_ms", bareDisturbed.addedMs(bareUndisturbed));
      report.figure("machine_lateness_undisturbed_ms", undisturbed.machineMs());
      report.figure("machine_lateness_disturbed_ms", disturbed.machineMs());
      report.figure("stall_events", events);
      report.figure("stall_all_back_ms", leftMs);
    }
    new SeatBench().run(node, report, quick);
    new StartBench().run(node, report, quick);
  }
}
