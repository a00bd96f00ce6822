package dev.vgpu.bench.death;

import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.Leftovers;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * How long other processes are held up when processes die or are stopped. Processes of the same and
 * of other virtual GPUs launch short kernels, while others are killed and stopped at random
 * moments, start-up included. For comparison: the same undisturbed, both without vgpu, and this
 * machine's lateness.
 */
public final class KillBench implements ProcessBench {
  private static final int EVENTS = 1_000;
  private static final int QUICK_EVENTS = 100;
  private static final int BARE_PART = 5;
  private static final MemorySize QUOTA = MemorySize.ofGibibytes(2);
  private static final double TARGET_ADDED_MS = 5;

  /** The survivor that shares its virtual GPU with some of the victims. */
  private static final int SHARING = 2;

  private final String stalls;

  /**
   * Creates the benchmark.
   *
   * @param stalls the file for the longest stalls; empty to trace none
   */
  public KillBench(String stalls) {
    this.stalls = stalls;
  }

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    int events = quick ? QUICK_EVENTS : EVENTS;
    try (PoolProcess pool = node.openPool()) {
      List<Map<String, String>> places = new ArrayList<>();
      for (String name : List.of("first", "second", "struck", "gone")) {
        places.add(
            pool.acquire(name, SharePolicy.BURST_SHARE, 25, PreemptionClass.NEARLINE, QUOTA));
      }
      List<Map<String, String>> survivors = places.subList(0, 3);
      List<Map<String, String>> victims = places.subList(2, 4);
      report.line(
          "%-38s%14s%14s%14s%14s%14s",
          "worst stall of others, ms", "launch", "sync", "worst", "kernels/s", "machine");
      @Nullable StallTrace trace =
          stalls.isEmpty() ? null : new StallTrace(node, places, Path.of(stalls));
      Disturbed hooked = new Disturbed(node, survivors, victims, trace);
      Disturbed.Reading undisturbed = hooked.phase(report, "undisturbed", 0, events);
      Disturbed.Reading disturbed = hooked.phase(report, "disturbed", events, events);
      Disturbed.Reading again = hooked.phase(report, "undisturbed again", 0, events);
      hooked.close();
      long leftMs = Leftovers.awaitNone(pool);
      Disturbed bare = new Disturbed(node, bare(survivors), bare(victims), null);
      int few = events / BARE_PART;
      Disturbed.Reading bareUndisturbed = bare.phase(report, "bare, undisturbed", 0, few);
      Disturbed.Reading bareDisturbed = bare.phase(report, "bare, disturbed", few, few);
      bare.close();
      tell(report, events, undisturbed, disturbed, leftMs);
      report.line(
          "  added by nothing, undisturbed again above undisturbed: %.1f ms",
          again.addedMs(undisturbed));
      report.figure("kill_added_by_nothing_ms", again.addedMs(undisturbed));
      report.figure("kill_worst_bare_ms", bareDisturbed.worstMs());
      report.figure("kill_worst_bare_undisturbed_ms", bareUndisturbed.worstMs());
      report.figure("kill_added_bare_ms", bareDisturbed.addedMs(bareUndisturbed));
    }
  }

  private static List<Map<String, String>> bare(List<Map<String, String>> places) {
    return places.stream().map(Node::bare).toList();
  }

  private static void tell(
      Report report,
      int events,
      Disturbed.Reading undisturbed,
      Disturbed.Reading disturbed,
      long leftMs) {
    report.line(
        "  %d killed and %d stopped, while starting too; all bytes back %d ms after the last",
        events, events, leftMs);
    double sharingMs = disturbed.addedMs(undisturbed, SHARING);
    report.line(
        "  added: %.1f ms (%.1f ms to the one that shares a virtual GPU with the struck);"
            + " target: <= %.0f ms above the same program undisturbed",
        disturbed.addedMs(undisturbed), sharingMs, TARGET_ADDED_MS);
    report.figure("kill_added_sharing_ms", sharingMs);
    report.figure("kill_events", events);
    report.figure("stop_events", events);
    report.figure("kill_worst_ms", disturbed.worstMs());
    report.figure("kill_worst_undisturbed_ms", undisturbed.worstMs());
    report.figure("kill_added_ms", disturbed.addedMs(undisturbed));
    report.figure("kill_machine_lateness_ms", disturbed.machineMs());
    report.figure("kill_machine_lateness_undisturbed_ms", undisturbed.machineMs());
    report.figure("kill_all_back_ms", leftMs);
  }
}
