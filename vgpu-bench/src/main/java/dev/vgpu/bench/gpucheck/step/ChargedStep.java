package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.util.Locale;
import java.util.Map;

/** What a lease is charged for work with a known GPU time. */
public final class ChargedStep implements Step {
  /** The value in the C program. */
  public static final int COLD_KERNELS = 8;

  private static final int LOOK_MS = 20;
  private static final int STILL = 3;
  private static final int MOST_LOOKS = 100;

  /** If a lease is charged less than this part of kernel time, a tenant can exceed its share. */
  private static final double LEAST_PART = 0.8;

  /** Above this, the time between kernels is charged too, in which the GPU is idle. */
  private static final double MOST_TIMES = 3;

  /** Shorter loads are not conclusive. */
  private static final double LEAST_LOAD_MS = 5;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    int count = quick ? 400 : 4_000;
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> leased = node.lease("charged", place.quota(4, 40));
      Child program = node.start(leased, "paced").awaitReady();
      settled(node);
      double coldMs = cold(node, findings, program);
      findings.line("%-44s%12s%14s%16s", "kernels", "wall ms", "charged ms", "us per kernel");
      work(node, findings, program, "paced 1000 0", 200);
      double sparse = work(node, findings, program, "paced 5 50", count);
      if (!quick) {
        work(node, findings, program, "paced 100 0", count / 2);
        work(node, findings, program, "paced 20 100", count / 2);
        work(node, findings, program, "waited 100 0", count / 4);
        work(node, findings, program, "waited 5 0", count);
      }
      findings.summary(
          "a cold first launch: %.2f ms charged; kernels of 5 us every 50 us: %.1f us each",
          coldMs, sparse);
    }
  }

  /** Milliseconds that the lease has been charged, read once the charge no longer grows. */
  private static double settled(CheckNode node) throws InterruptedException {
    long before = -1;
    int still = 0;
    for (int i = 0; i < MOST_LOOKS && still < STILL; i++) {
      long now = node.lease().path("gpu_ns").asLong();
      still = now == before ? still + 1 : 0;
      before = now;
      NanoClock.sleepMillis(LOOK_MS);
    }
    return before / 1e6;
  }

  private static double cold(CheckNode node, Findings findings, Child program)
      throws InterruptedException {
    double before = settled(node);
    Answer answer = program.ask("cold");
    double charged = settled(node) - before;
    double first = answer.number("first_ns") / 1e6;
    double again = answer.number("again_ns") / 1e6;
    findings
        .at("cold")
        .put("load_ms", Findings.rounded(answer.number("load_ns") / 1e6, 3))
        .put("first_ms", Findings.rounded(first, 3))
        .put("again_ms", Findings.rounded(again, 3))
        .put("charged_ms", Findings.rounded(charged, 3));
    findings.line(
        "%d kernels of a module that no cache knows: loaded in %.1f ms, launched in %.1f ms, again"
            + " in %.2f ms; charged %.2f ms in all",
        COLD_KERNELS, answer.number("load_ns") / 1e6, first, again, charged);
    if (first - again > LEAST_LOAD_MS && charged > (first - again) / 2) {
      findings.failure(
          "loading counts as GPU time: %.1f ms charged for first launches of %.1f ms",
          charged, first);
    }
    return charged;
  }

  /**
   * Runs an order, "paced US GAP_US" or "waited US GAP_US" without its count; returns the
   * microseconds charged per kernel.
   */
  private static double work(
      CheckNode node, Findings findings, Child program, String order, int count)
      throws InterruptedException {
    double us = Double.parseDouble(order.split(" ", -1)[1]);
    double gapUs = Double.parseDouble(order.split(" ", -1)[2]);
    double before = settled(node);
    double wall = program.ask(order + " " + count).number("wall_ns") / 1e6;
    double charged = settled(node) - before;
    double each = 1e3 * charged / count;
    String name =
        String.format(
            Locale.ROOT,
            "%d of %.0f us, %s",
            count,
            us,
            order.startsWith("waited")
                ? "each waited for"
                : gapUs > 0 ? String.format(Locale.ROOT, "one every %.0f us", gapUs) : "queued");
    ObjectNode into = findings.at("kernels", order);
    into.put("count", count).put("wall_ms", Findings.rounded(wall, 3));
    into.put("charged_ms", Findings.rounded(charged, 3)).put("us", Findings.rounded(each, 3));
    findings.line("%-44s%12.2f%14.2f%16.2f", name, wall, charged, each);
    if (charged < LEAST_PART * us * count / 1e3) {
      findings.failure("%s: %.2f us charged of each, which took no less than %.0f", name, each, us);
    }
    if (gapUs > us) {
      findings.expect(
          name + ": us charged of each",
          each,
          0,
          us * MOST_TIMES,
          "launch-bound tenants pay for their own gaps: batches have to end sooner");
    }
    if (charged > wall * 1.05) {
      findings.failure("%s: %.1f ms charged in %.1f ms", name, charged, wall);
    }
    return each;
  }
}
