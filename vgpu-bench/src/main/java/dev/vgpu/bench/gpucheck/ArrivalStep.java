package dev.vgpu.bench.gpucheck;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One short kernel of an idle online program beside an offline one whose kernels are long: how long
 * it takes, which tells whether a kernel is stopped in its middle.
 */
final class ArrivalStep implements Step {
  private static final double ONLINE_US = 100;
  private static final long[] OFFLINE_US = {10_000, 1_000, 200, 50_000};

  private double aloneP50Ms;
  private double waitP50Ms;
  private double waitP99Ms;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    MemorySize quota = place.quota(4, 25);
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> online =
          node.lease("online", SharePolicy.BURST_SHARE, 50, PreemptionClass.ONLINE, quota);
      Map<String, String> offline =
          node.lease("offline", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, quota);
      findings.line(
          "%-28s%10s%10s%10s%18s",
          "a kernel of 0.1 ms beside", "p50 ms", "p99 ms", "worst", "offline held %");
      aloneP50Ms = arrive(node, findings, "nothing, bare", CheckNode.BARE, null, 0, quick);
      aloneP50Ms = arrive(node, findings, "nothing", online, null, 0, quick);
      for (long us : quick ? new long[] {10_000} : OFFLINE_US) {
        String kernels = "kernels of " + us / 1e3 + " ms";
        arrive(node, findings, kernels, online, offline, us, quick);
        if (us >= 10_000) {
          arrive(node, findings, kernels + ", bare", CheckNode.BARE, CheckNode.BARE, us, quick);
        }
      }
      tellLevel(place, findings);
    }
    findings.summary(
        "beside 10 ms kernels p50 %.3f ms, p99 %.3f ms; alone p50 %.3f ms: level 2 %s",
        waitP50Ms,
        waitP99Ms,
        aloneP50Ms,
        waitP50Ms - aloneP50Ms < 2 ? "seems to answer" : "does not show");
  }

  private double arrive(
      CheckNode node,
      Findings findings,
      String beside,
      Map<String, String> online,
      @Nullable Map<String, String> offline,
      long offlineUs,
      boolean quick)
      throws InterruptedException {
    Child load = null;
    double heldPercent = 0;
    if (offline != null) {
      load = node.start(offline, "load", offlineUs + "000", "1", "0", "start").awaitReady();
      NanoClock.sleepMillis(300);
    }
    Answer before = load == null ? null : load.ask("read");
    Done done =
        node.sample(
            online,
            20,
            "burst",
            "--rate",
            "40",
            "--poisson",
            "--kernels",
            "1",
            "--us",
            String.format(Locale.ROOT, "%.0f", ONLINE_US),
            "--seconds",
            quick ? "0.5" : "4",
            "--json");
    if (load != null && before != null) {
      Answer after = load.ask("read");
      double wallUs = (after.number("now_ns") - before.number("now_ns")) / 1e3;
      heldPercent = 100 * (after.number("kernels") - before.number("kernels")) * offlineUs / wallUs;
      load.kill();
    }
    JsonNode ms = done.json().path("latency_ms");
    ObjectNode into = findings.at(beside);
    into.put("exit_code", done.exitCode())
        .put("offline_held_percent", Findings.rounded(heldPercent, 2));
    into.set("said", done.json());
    findings.line(
        "%-28s%10.3f%10.3f%10.3f%18.1f",
        beside,
        ms.path("p50").asDouble(),
        ms.path("p99").asDouble(),
        ms.path("max").asDouble(),
        heldPercent);
    if (!done.isOk()) {
      findings.failure("beside %s: %s", beside, done.why());
    }
    if (offlineUs == 10_000 && offline != null && !offline.isEmpty()) {
      waitP50Ms = ms.path("p50").asDouble();
      waitP99Ms = ms.path("p99").asDouble();
    }
    return ms.path("p50").asDouble();
  }

  /** What the hooks said of it. */
  private static void tellLevel(Place place, Findings findings) {
    Path log = place.work().resolve("hook.log");
    List<String> lines =
        Outcome.linesOf(log).stream()
            .filter(line -> line.contains("level 2") || line.contains("channel"))
            .map(line -> line.replaceFirst("^vgpu\\[[0-9]+\\]: ", ""))
            .distinct()
            .limit(20)
            .toList();
    lines.forEach(line -> findings.line("hook: %s", line));
    if (lines.isEmpty()) {
      findings.line("no hook said anything of level 2");
    }
  }
}
