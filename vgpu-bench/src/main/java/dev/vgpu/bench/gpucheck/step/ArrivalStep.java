package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * Runs one short kernel of an idle online program beside an offline program with long kernels. How
 * long it takes tells whether a running kernel is preempted.
 */
public final class ArrivalStep implements Step {
  private static final double ONLINE_US = 100;
  private static final long[] OFFLINE_US = {10_000, 1_000, 200, 50_000};

  private static final double BENCH_SECONDS = 30;

  /** The figures of the table: 10 ms kernels, with preemption inside kernels on and off. */
  private double onP50Ms;

  private @Nullable Child allocator;
  private double onP99Ms;
  private double offP50Ms;
  private double offP99Ms;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    findings.line(
        "%-40s%10s%10s%10s%18s",
        "a kernel of 0.1 ms beside", "p50 ms", "p99 ms", "worst", "offline held %");
    all(place, findings, "on", Map.of(), quick);
    all(place, findings, "off", Map.of("VGPU_LEVEL2", "off"), quick);
    bench(place, findings, quick);
    boolean answers = tellLevel(place, findings);
    findings.at().put("level2_answers", answers);
    findings.summary(
        "level 2 %s; a kernel beside 10 ms ones: p50 %.3f p99 %.3f ms with it, %.3f %.3f without",
        answers ? "answers" : "does not answer", onP50Ms, onP99Ms, offP50Ms, offP99Ms);
  }

  private void all(
      Place place, Findings findings, String level2, Map<String, String> settings, boolean quick)
      throws InterruptedException {
    MemorySize quota = place.quota(4, 25);
    boolean isOff = !settings.isEmpty();
    try (CheckNode node = CheckNode.open(place, settings)) {
      Map<String, String> online =
          node.lease("online", SharePolicy.BURST_SHARE, 50, PreemptionClass.ONLINE, quota);
      Map<String, String> offline =
          node.lease("offline", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, quota);
      allocator = node.start(CheckNode.BARE, "allocs").awaitReady();
      if (!isOff) {
        arrive(node, findings, "nothing, bare", CheckNode.BARE, null, 0, quick);
        arrive(node, findings, "nothing", online, null, 0, quick);
      }
      for (long us : quick || isOff ? new long[] {10_000} : OFFLINE_US) {
        String kernels = "kernels of " + us / 1e3 + " ms";
        JsonNode ms =
            arrive(node, findings, kernels + ", level 2 " + level2, online, offline, us, quick);
        if (us == 10_000 && isOff) {
          offP50Ms = ms.path("p50").asDouble();
          offP99Ms = ms.path("p99").asDouble();
        } else if (us == 10_000) {
          onP50Ms = ms.path("p50").asDouble();
          onP99Ms = ms.path("p99").asDouble();
        }
        if (us >= 10_000 && !isOff) {
          arrive(node, findings, kernels + ", bare", CheckNode.BARE, CheckNode.BARE, us, quick);
        }
      }
    }
  }

  /** From the online program's start to the moment the GPU is yielded, as the hooks see it. */
  private static void bench(Place place, Findings findings, boolean quick)
      throws InterruptedException {
    if (quick) {
      return;
    }
    List<String> command = new ArrayList<>(Place.bench());
    command.addAll(List.of("level2", "--quick"));
    Done done = Done.run(command, variables -> {}, place.work(), BENCH_SECONDS);
    findings.at("bench").put("exit_code", done.exitCode()).put("text", done.out());
    String said = done.isOk() ? done.out() : "bench level2: " + done.why();
    said.lines().forEach(line -> findings.line("%s", line));
  }

  /** How long each allocation of a third program, which is not under vgpu, waited meanwhile. */
  private void tellAllocator(Findings findings, String beside) throws InterruptedException {
    Answer answer = Objects.requireNonNull(allocator).ask("read");
    findings
        .at(beside, "other_allocates")
        .put("p50_us", Findings.rounded(answer.number("p50_ns") / 1e3, 2))
        .put("p99_us", Findings.rounded(answer.number("p99_ns") / 1e3, 2))
        .put("max_us", Findings.rounded(answer.number("max_ns") / 1e3, 2));
    findings.line(
        "%-40s%10.1f%10.1f%10.1f us: another program's cuMemAlloc",
        "",
        answer.number("p50_ns") / 1e3,
        answer.number("p99_ns") / 1e3,
        answer.number("max_ns") / 1e3);
  }

  private JsonNode arrive(
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
    Objects.requireNonNull(allocator).ask("read");
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
            quick ? "0.5" : "3",
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
        "%-40s%10.3f%10.3f%10.3f%18.1f",
        beside,
        ms.path("p50").asDouble(),
        ms.path("p99").asDouble(),
        ms.path("max").asDouble(),
        heldPercent);
    tellAllocator(findings, beside);
    if (!done.isOk()) {
      findings.failure("beside %s: %s", beside, done.why());
    }
    return ms;
  }

  /** Prints what the hooks reported; returns whether one reported preemption inside kernels. */
  private static boolean tellLevel(Place place, Findings findings) {
    Path log = place.work().resolve("hook.log");
    List<String> lines =
        Outcome.linesOf(log).stream()
            .filter(line -> line.contains("inside a kernel") || line.contains("inside kernels"))
            .map(line -> line.replaceFirst("^vgpu\\[[0-9]+\\]: ", ""))
            .distinct()
            .limit(20)
            .toList();
    lines.forEach(line -> findings.line("hook: %s", line));
    if (lines.isEmpty()) {
      findings.line("no hook said anything of level 2");
    }
    return lines.stream().anyMatch(line -> line.contains("stops inside kernels"));
  }
}
