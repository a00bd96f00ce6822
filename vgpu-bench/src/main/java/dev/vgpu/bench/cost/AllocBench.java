package dev.vgpu.bench.cost;

import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.Node;
import dev.vgpu.bench.harness.PoolProcess;
import dev.vgpu.bench.report.ProcessBench;
import dev.vgpu.bench.report.Report;
import dev.vgpu.bench.report.Rounds;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** What an exact quota adds to a pair of alloc and free, by the number of live allocations. */
public final class AllocBench implements ProcessBench {
  private static final int BLOCKS = 300;
  private static final int PAIRS = 64;
  private static final double TARGET_NS = 120;
  private static final double TARGET_BYTES = 64;
  private static final int MANY = 100_000;

  @Override
  public void run(Node node, Report report, boolean quick) throws InterruptedException {
    try (PoolProcess pool = node.openPool()) {
      Map<String, String> leased =
          pool.acquire(
              "alloc",
              SharePolicy.BEST_EFFORT,
              0,
              PreemptionClass.NEARLINE,
              MemorySize.ofGibibytes(8));
      report.line(
          "%-38s%16s%16s%16s", "alloc and free, by live count", "bare ns", "hooked ns", "added ns");
      for (int live : new int[] {0, 1_000, 10_000, MANY}) {
        report.progress("alloc, " + live + " live");
        Rounds rounds = new Rounds(2);
        for (int generation = 0; generation < (quick ? 1 : 3); generation++) {
          List<Child> programs =
              List.of(
                  node.start(Node.bare(leased), "alloc", "1").awaitReady(),
                  node.start(leased, "alloc", "1").awaitReady());
          for (Child program : programs) {
            program.ask("live " + live);
          }
          rounds.measure(programs, "run " + BLOCKS + " " + PAIRS, quick ? 7 : 15);
          for (Child program : programs) {
            program.kill();
          }
        }
        String key = Integer.toString(live);
        report.figure("alloc_added_ns", key, rounds.added(1));
        report.figure("alloc_bare_ns", key, rounds.median(0));
        report.line(
            "  %-36s%16.1f%16.1f%16.1f", key, rounds.median(0), rounds.median(1), rounds.added(1));
      }
      report.line("  target: <= %.0f ns, flat, exact", TARGET_NS);
      report.progress("alloc, what the hook takes for each");
      double bytes = hookBytes(node, leased);
      report.line("%-38s%16.1f", "the hook's memory for a live one, bytes", bytes);
      report.line("  target: <= %.0f bytes", TARGET_BYTES);
      report.figure("alloc_hook_bytes_per_live", bytes);
    }
  }

  /** How much more memory a program under a virtual GPU needs for each of many live allocations. */
  private static double hookBytes(Node node, Map<String, String> leased)
      throws InterruptedException {
    long bare = growth(node, Node.bare(leased));
    return (growth(node, leased) - bare) / (double) MANY;
  }

  private static long growth(Node node, Map<String, String> place) throws InterruptedException {
    try (Child program = node.start(place, "alloc", "1").awaitReady()) {
      long before = ownBytes(program.pid());
      Answer ignored = program.ask("live " + MANY);
      return ownBytes(program.pid()) - before;
    }
  }

  /** The resident anonymous memory of a process. */
  private static long ownBytes(long pid) {
    try {
      for (String line : Files.readAllLines(Path.of("/proc", Long.toString(pid), "status"))) {
        if (line.startsWith("RssAnon:")) {
          return Long.parseLong(line.replaceAll("\\D", "")) << 10;
        }
      }
      throw new IllegalStateException("the kernel does not say RssAnon");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
