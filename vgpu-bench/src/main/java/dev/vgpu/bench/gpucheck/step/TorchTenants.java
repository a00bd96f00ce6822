package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.PreemptionClass;
import dev.vgpu.request.SharePolicy;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;

/**
 * Two tenants of PyTorch with half of the GPU each, and the same two bare: the throughput of each
 * by an outside clock, alone and beside the other one. Each process is compared with itself,
 * because the host code of two starts differs in speed by up to a fifth. Also the memory of one
 * tenant, according to the ledger and to NVML. Confined to one thread.
 */
final class TorchTenants {
  private static final List<String> KINDS = List.of("launch", "compute");
  private static final long MIB = 1 << 20;
  private static final long WARM_UP_MS = 700;

  /**
   * What a tenant with half of the GPU keeps at least of its throughput alone, in percent by the
   * outside clock. Two that fit beside each other keep more, and not the same.
   */
  private static final double LEAST_KEPT = 47;

  /** The accepted loss of two tenants together, in percent of the throughput of one alone. */
  private static final double MOST_LOST = 5;

  private static final double PERCENT = 100;

  private final CheckNode node;
  private final Findings findings;
  private final List<String> script;
  private final MemorySize quota;

  TorchTenants(CheckNode node, Findings findings, List<String> script, MemorySize quota) {
    this.node = node;
    this.findings = findings;
    this.script = script;
    this.quota = quota;
  }

  void run(boolean quick) throws InterruptedException {
    long windowMs = quick ? 1_000 : 3_000;
    Map<String, Pair> bare = pairs(List.of(CheckNode.BARE, CheckNode.BARE), windowMs);
    Map<String, String> first = lease("half1");
    Map<String, String> second = lease("half2");
    memory(first);
    Map<String, Pair> held = pairs(List.of(first, second), windowMs);
    node.awaitNothingHeld(5);
    node.release("half1");
    node.release("half2");
    List<String> said = new ArrayList<>();
    for (String kind : KINDS) {
      said.add(tell(kind, require(bare, kind), require(held, kind)));
    }
    findings.at("tenants").put("said", String.join("; ", said));
  }

  /** What two processes did per second: each alone, and both together. */
  private record Pair(List<Double> alone, List<Double> together) {
    /** The part of its throughput alone that a process keeps beside the other, in percent. */
    double kept(int which) {
      return PERCENT * together.get(which) / alone.get(which);
    }

    /** What both keep of the throughput of one: 100 if they share a GPU that one can fill. */
    double sum() {
      return kept(0) + kept(1);
    }

    double share() {
      return PERCENT * kept(0) / sum();
    }

    @Override
    public String toString() {
      return String.format(
          Locale.ROOT,
          "alone %.1f and %.1f a second, together %.1f and %.1f: they keep %.1f + %.1f %%",
          alone.get(0),
          alone.get(1),
          together.get(0),
          together.get(1),
          kept(0),
          kept(1));
    }
  }

  private static Pair require(Map<String, Pair> pairs, String kind) {
    return Objects.requireNonNull(pairs.get(kind));
  }

  private Map<String, Pair> pairs(List<Map<String, String>> places, long windowMs)
      throws InterruptedException {
    List<Child> both = start(places);
    Map<String, Pair> pairs = new LinkedHashMap<>();
    for (String kind : KINDS) {
      List<Double> alone = new ArrayList<>();
      for (Child child : both) {
        alone.addAll(rates(List.of(child), kind, windowMs));
      }
      pairs.put(kind, new Pair(alone, rates(both, kind, windowMs)));
    }
    both.forEach(Child::close);
    return pairs;
  }

  private String tell(String kind, Pair bare, Pair held) {
    put(findings.at("tenants", kind, "bare"), bare);
    put(findings.at("tenants", kind, "vgpu"), held);
    findings.line("two programs, %s-bound, bare: %s", kind, bare);
    findings.line("two tenants, %s-bound, 50/50: %s", kind, held);
    double least = Math.min(held.kept(0), held.kept(1));
    if (least < LEAST_KEPT) {
      findings.failure("a tenant with half of the GPU, %s-bound, keeps %.1f %%", kind, least);
    }
    double lost = PERCENT - held.sum();
    findings.expect(
        "percent lost by two tenants, " + kind + "-bound",
        lost,
        -PERCENT,
        MOST_LOST,
        "turns or batches cost more than they should");
    return String.format(
        Locale.ROOT,
        "50/50 %s-bound %.1f/%.1f, together %.0f %% of one (bare %.0f)",
        kind,
        held.share(),
        PERCENT - held.share(),
        held.sum(),
        bare.sum());
  }

  private static void put(ObjectNode into, Pair pair) {
    for (int i = 0; i < 2; i++) {
      String which = i == 0 ? "first" : "second";
      into.put(which + "_alone_per_s", Findings.rounded(pair.alone.get(i), 2));
      into.put(which + "_per_s", Findings.rounded(pair.together.get(i), 2));
      into.put(which + "_kept_percent", Findings.rounded(pair.kept(i), 2));
    }
    into.put("share_percent", Findings.rounded(pair.share(), 2));
    into.put("sum_percent", Findings.rounded(pair.sum(), 2));
  }

  private Map<String, String> lease(String name) throws InterruptedException {
    return node.lease(name, SharePolicy.BURST_SHARE, 50, PreemptionClass.NEARLINE, quota);
  }

  private List<Child> start(List<Map<String, String>> places) throws InterruptedException {
    List<Child> children = new ArrayList<>();
    for (Map<String, String> place : places) {
      children.add(node.start("tenant", TorchStep.with(script, "tenant"), place));
    }
    for (Child child : children) {
      TorchStep.ready(child, node);
    }
    return children;
  }

  /** The throughput of each tenant per second, measured together. */
  private List<Double> rates(List<Child> children, String kind, long windowMs)
      throws InterruptedException {
    for (Child child : children) {
      JsonNode ignored = TorchStep.ask(child, kind);
    }
    NanoClock.sleepMillis(WARM_UP_MS);
    List<JsonNode> before = ask(children, "read");
    NanoClock.sleepMillis(windowMs);
    List<JsonNode> after = ask(children, "stop");
    List<Double> rates = new ArrayList<>();
    for (int i = 0; i < children.size(); i++) {
      JsonNode error = after.get(i).path("error");
      if (error.isTextual()) {
        findings.failure("a tenant, %s-bound: %s", kind, error.asText());
      }
      double seconds =
          after.get(i).path("now_s").asDouble() - before.get(i).path("now_s").asDouble();
      double done = after.get(i).path("done").asDouble() - before.get(i).path("done").asDouble();
      rates.add(done / seconds);
    }
    return rates;
  }

  private static List<JsonNode> ask(List<Child> children, String order)
      throws InterruptedException {
    List<JsonNode> answers = new ArrayList<>();
    for (Child child : children) {
      answers.add(TorchStep.ask(child, order));
    }
    return answers;
  }

  /** Compares the memory of one tenant: context, modules and caching allocator. */
  private void memory(Map<String, String> leased) throws InterruptedException {
    Child observer =
        node.start(CheckNode.BARE, "observe", Long.toString(quota.bytes())).awaitReady();
    long idle = observer.ask("read").whole("now");
    Child tenant = start(List.of(leased)).get(0);
    JsonNode ignored = TorchStep.ask(tenant, "compute");
    NanoClock.sleepMillis(WARM_UP_MS);
    long reserved = TorchStep.ask(tenant, "stop").path("reserved_bytes").asLong();
    NanoClock.sleepMillis(2 * WARM_UP_MS); // the hook measures once a second
    long nvml = observer.ask("read").whole("now") - idle;
    long ledger = node.memoryHeld();
    tenant.kill();
    observer.kill();
    node.awaitNothingHeld(5);
    ObjectNode into = findings.at("memory");
    into.put("ledger_bytes", ledger).put("nvml_bytes", nvml).put("reserved_bytes", reserved);
    findings.line(
        "one tenant: ledger %.0f MiB, NVML %.0f MiB, of that tensors %.0f MiB",
        ledger / (double) MIB, nvml / (double) MIB, reserved / (double) MIB);
    if (nvml > 0) {
      findings.expect(
          "MiB that the ledger is apart from NVML",
          Math.abs(ledger - nvml) / (double) MIB,
          0,
          64,
          "quotas have to leave room for it");
    }
  }
}
