package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Programs that exit while their kernels run: in the main thread, in another thread, and with calls
 * after the driver's own shutdown. They run bare, under a virtual GPU, and while an online program
 * preempts them.
 */
public final class LeaveStep implements Step {
  private static final List<String> KINDS = List.of("exit", "thread", "handler");
  private static final int MOST_AT_ONCE = 8;

  /** A program that has not ended by then hangs. */
  private static final double HANGS_SECONDS = 10;

  /** After that, only the first program of a row is started. */
  private static final double BEGIN_SECONDS = 32;

  private final long endNs = NanoClock.nanoTime() + (long) (BEGIN_SECONDS * 1e9);

  /** Rows of the table that are still to come; each has its part of the time that is left. */
  private int rows = 3 * KINDS.size();

  private int runs;
  private int bad;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    MemorySize quota = place.quota(4, 25);
    findings.line("%-46s%8s%10s%12s", "exits with work in flight", "runs", "ended", "slowest s");
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> online =
          node.lease("online", SharePolicy.BURST_SHARE, 50, PreemptionClass.ONLINE, quota);
      Map<String, String> offline =
          node.lease("offline", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, quota);
      all(node, findings, "bare", CheckNode.BARE, quick ? 1 : 10);
      runs = 0;
      all(node, findings, "vgpu", offline, quick ? 2 : 50);
      Child stopper =
          node.start(
              "burst",
              List.of(
                  node.samplePath("burst"),
                  "--rate",
                  "60",
                  "--poisson",
                  "--kernels",
                  "1",
                  "--us",
                  "4000",
                  "--seconds",
                  "60",
                  "--json"),
              online);
      all(node, findings, "vgpu, stopped by an online program", offline, quick ? 1 : 17);
      stopper.kill();
      double backMs = node.awaitNothingHeld(5);
      findings.at("after").put("all_back_ms", Findings.rounded(backMs, 1));
      if (backMs < 0) {
        findings.failure("5 s after the last one the ledger still holds %d", node.memoryHeld());
      }
    }
    findings.summary("%d of %d ended well under vgpu", runs - bad, runs);
  }

  private void all(
      CheckNode node, Findings findings, String where, Map<String, String> environment, int count)
      throws InterruptedException {
    for (String kind : KINDS) {
      long untilNs = until(NanoClock.nanoTime(), endNs, rows--);
      List<Done> ended = together(node, environment, kind, count, untilNs);
      ObjectNode into = findings.at(where, kind);
      double slowest = ended.stream().mapToDouble(Done::seconds).max().orElse(0);
      List<Done> wrong = ended.stream().filter(done -> !done.isOk()).toList();
      into.put("runs", ended.size()).put("ended", ended.size() - wrong.size());
      into.put("slowest_s", Findings.rounded(slowest, 3));
      if (kind.equals("handler") && !ended.isEmpty()) {
        into.put("code_after_the_driver", ended.get(0).json().path("code").asInt());
      }
      findings.line(
          "  %-44s%8d%10d%12.2f",
          where + ": " + kind, ended.size(), ended.size() - wrong.size(), slowest);
      runs += ended.size();
      if (!wrong.isEmpty()) {
        Done first = wrong.get(0);
        String why = why(first) + " " + first.out().strip();
        into.put("first_wrong", why);
        if (environment.isEmpty()) {
          findings.line("  without vgpu as well: %s", why);
        } else {
          bad += wrong.size();
          findings.failure("%d of %d, %s: %s", wrong.size(), ended.size(), kind, why);
        }
      }
    }
  }

  /** {@return until when a row may start programs, with so many rows to come, itself included} */
  static long until(long nowNs, long endNs, int rows) {
    return nowNs + (endNs - nowNs) / rows;
  }

  private static String why(Done done) {
    return done.exitCode() > 128
        ? "ended by signal " + (done.exitCode() - 128)
        : done.exitCode() == Done.TIMED_OUT ? "it hangs: " + done.why() : done.why();
  }

  private List<Done> together(
      CheckNode node, Map<String, String> environment, String kind, int count, long untilNs)
      throws InterruptedException {
    int atOnce = Math.min(MOST_AT_ONCE, 2 * Runtime.getRuntime().availableProcessors());
    ExecutorService threads = Executors.newFixedThreadPool(atOnce);
    try {
      List<Future<List<Done>>> futures = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        boolean isFirst = i == 0;
        futures.add(
            threads.submit(
                () ->
                    isFirst || NanoClock.nanoTime() - untilNs < 0
                        ? List.of(node.program(environment, HANGS_SECONDS, "leave", kind))
                        : List.of()));
      }
      List<Done> all = new ArrayList<>();
      for (Future<List<Done>> future : futures) {
        all.addAll(future.get());
      }
      return all;
    } catch (ExecutionException e) {
      throw new IllegalStateException("a run failed: " + e.getCause(), e);
    } finally {
      threads.shutdownNow();
    }
  }
}
