package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Outcome;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/** A PyTorch training and inference pair, and the caching allocator, bare and under vgpu. */
public final class TorchStep implements Step {
  private static final double SECONDS = 60;
  private static final double RATE = 40;
  private static final long QUOTA_GIB = 8;

  private double bareRatio;
  private double heldRatio;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    if (place.isOverStandIn()) {
      findings.skip("PyTorch is not run over a driver that stands in");
      return;
    }
    String python = Place.onPath("python3").map(Path::toString).orElse("");
    if (python.isEmpty() || !hasTorch(place, findings, python)) {
      findings.skip("no PyTorch here: python3 is %s", python.isEmpty() ? "not there" : python);
      return;
    }
    List<String> script = List.of(python, place.sample("torch_pair.py").toString());
    try (CheckNode node = CheckNode.open(place)) {
      MemorySize quota = place.quota(QUOTA_GIB, 40);
      Map<String, String> offline =
          node.lease("train", SharePolicy.BEST_EFFORT, 0, PreemptionClass.OFFLINE, quota);
      costs(node, findings, script, "bare", CheckNode.BARE, quota);
      costs(node, findings, script, "vgpu", offline, quota);
      new TorchTenants(node, findings, script, place.quota(QUOTA_GIB, 30)).run(quick);
      Map<String, String> online =
          node.lease("serve", SharePolicy.BURST_SHARE, 50, PreemptionClass.ONLINE, quota);
      String seconds = quick ? "1" : "5";
      bareRatio =
          pair(node, findings, script, "bare", List.of(CheckNode.BARE, CheckNode.BARE), seconds);
      heldRatio = pair(node, findings, script, "vgpu", List.of(online, offline), seconds);
    }
    findings.summary(
        "%s; launch %.2f us bare, %.2f under vgpu; p99 beside training %.2f x bare, %.2f x under vgpu",
        findings.at("tenants").path("said").asText(),
        findings.at("bare", "costs").path("launch_us").asDouble(),
        findings.at("vgpu", "costs").path("launch_us").asDouble(),
        bareRatio,
        heldRatio);
  }

  private static boolean hasTorch(Place place, Findings findings, String python)
      throws InterruptedException {
    Done done =
        Done.run(
            List.of(python, "-c", "import torch; print(torch.__version__)"),
            variables -> {},
            place.work(),
            SECONDS);
    findings.at().put("torch", done.out().strip()).put("import_error", done.err());
    return done.isOk();
  }

  private static void costs(
      CheckNode node,
      Findings findings,
      List<String> script,
      String where,
      Map<String, String> environment,
      MemorySize quota)
      throws InterruptedException {
    Done done =
        node.run(
            environment,
            SECONDS,
            List.of(script.get(0), script.get(1), "costs", Long.toString(quota.bytes() * 2)));
    ObjectNode into = findings.at(where, "costs");
    done.out()
        .lines()
        .map(Outcome::parse)
        .filter(ObjectNode.class::isInstance)
        .forEach(said -> into.setAll((ObjectNode) said));
    into.put("exit_code", done.exitCode());
    JsonNode fill = into.path("fill");
    findings.line(
        "%s: launch %.2f us, graph of 20 %s us, matmul %.1f TFLOP/s, start %.1f s",
        where,
        into.path("launch_us").asDouble(),
        into.path("graph_replay_20_us").asText(),
        into.path("matmul_tflops").asDouble(),
        into.path("init_s").asDouble());
    findings.line(
        "%s: the caching allocator got %.0f MiB, then %s; afterwards it works: %s",
        where,
        fill.path("tensors_bytes").asLong() / 1048576.0,
        fill.path("refusal").asText("?"),
        fill.path("works_afterwards").asText("?"));
    if (!done.isOk()) {
      into.put("stderr", done.err());
      findings.failure("torch, %s: %s", where, done.why());
    } else if (!environment.isEmpty()
        && !fill.path("refusal").asText().equals("OutOfMemoryError")) {
      findings.failure(
          "under a quota of %s the caching allocator ended with: %s",
          quota, fill.path("refusal").asText());
    } else if (fill.path("reserved_bytes").asLong() > quota.bytes() && !environment.isEmpty()) {
      findings.failure("the caching allocator got more than the quota of %s", quota);
    }
    findings.write();
  }

  /** How much longer a request takes beside training, at the 99th percentile. */
  private static double pair(
      CheckNode node,
      Findings findings,
      List<String> script,
      String where,
      List<Map<String, String>> places,
      String seconds)
      throws InterruptedException {
    Child serve = node.start("serve", with(script, "serve"), places.get(0));
    Child train = node.start("train", with(script, "train"), places.get(1));
    ready(serve, node);
    ready(train, node);
    String order = "run " + seconds + " " + RATE;
    JsonNode alone = ask(serve, order);
    ask(train, "start");
    NanoClock.sleepMillis(500);
    JsonNode before = ask(train, "read");
    JsonNode beside = ask(serve, order);
    JsonNode after = ask(train, "stop");
    double besideRate = rate(before, after);
    // Training alone, without requests.
    ask(train, "start");
    NanoClock.sleepMillis(500);
    JsonNode from = ask(train, "read");
    NanoClock.sleepMillis(2_000);
    double aloneRate = rate(from, ask(train, "stop"));
    serve.kill();
    train.kill();
    ObjectNode into = findings.at(where, "pair");
    into.set("serve_alone", alone);
    into.set("serve_beside", beside);
    into.set("train_beside", after);
    into.put("train_steps_per_s_beside", Findings.rounded(besideRate, 2));
    into.put("train_steps_per_s_alone", Findings.rounded(aloneRate, 2));
    double ratio = beside.path("p99_ms").asDouble() / alone.path("p99_ms").asDouble();
    into.put("p99_ratio", Findings.rounded(ratio, 3));
    findings.line(
        "%s: requests alone p50 %.2f p99 %.2f ms, beside training p50 %.2f p99 %.2f ms; training"
            + " %.1f steps/s alone, %.1f beside",
        where,
        alone.path("p50_ms").asDouble(),
        alone.path("p99_ms").asDouble(),
        beside.path("p50_ms").asDouble(),
        beside.path("p99_ms").asDouble(),
        aloneRate,
        besideRate);
    if (!after.path("error").isNull() && after.has("error")) {
      findings.failure("training, %s: %s", where, after.path("error").asText());
    }
    return ratio;
  }

  static List<String> with(List<String> script, String mode) {
    return List.of(script.get(0), script.get(1), mode);
  }

  static void ready(Child child, CheckNode node) throws InterruptedException {
    String line = child.line();
    if (!line.equals("ready")) {
      throw new IllegalStateException(child + " is not ready: " + line + "\n" + node.errors());
    }
  }

  static JsonNode ask(Child child, String order) throws InterruptedException {
    child.tell(order);
    return Outcome.parse(child.line());
  }

  private static double rate(JsonNode from, JsonNode to) {
    double seconds = to.path("now_s").asDouble() - from.path("now_s").asDouble();
    return (to.path("steps").asDouble() - from.path("steps").asDouble()) / seconds;
  }
}
