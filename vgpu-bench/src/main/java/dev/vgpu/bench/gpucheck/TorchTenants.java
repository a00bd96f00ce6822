package dev.vgpu.bench.gpucheck;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.MemorySize;
import dev.vgpu.PreemptionClass;
import dev.vgpu.SharePolicy;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Two tenants of PyTorch with half of the GPU each, compared with one that is alone and bare: the
 * throughput of each by an outside clock. Also the memory of one tenant, according to the ledger
 * and to NVML. Confined to one thread.
 */
final class TorchTenants {
  private static final List<String> KINDS = List.of("launch", "compute");
  private static final long MIB = 1 << 20;
  private static final long WARM_UP_MS = 700;

  /** The accepted difference of two equal tenants, in percentage points by the outside clock. */
  private static final double MOST_APART = 3;

  /** The accepted loss of two tenants together, in percent of the throughput of one alone. */
  private static final double MOST_LOST = 5;

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
    List<String> said = new ArrayList<>();
    List<Child> bare = start(List.of(CheckNode.BARE));
    List<Double> alone = new ArrayList<>();
    for (String kind : KINDS) {
      alone.add(rates(bare, kind, windowMs).get(0));
    }
    bare.get(0).kill();
    Map<String, String> first = lease("half1");
    Map<String, String> second = lease("half2");
    memory(first);
    List<Child> both = start(List.of(first, second));
    for (int i = 0; i < KINDS.size(); i++) {
      String kind = KINDS.get(i);
      List<Double> rates = rates(both, kind, windowMs);
      double sum = rates.get(0) + rates.get(1);
      double share = 100 * rates.get(0) / sum;
      double lost = 100 * (1 - sum / alone.get(i));
      ObjectNode into = findings.at("tenants", kind);
      into.put("alone_bare_per_s", Findings.rounded(alone.get(i), 2));
      into.put("first_per_s", Findings.rounded(rates.get(0), 2));
      into.put("second_per_s", Findings.rounded(rates.get(1), 2));
      into.put("share_percent", Findings.rounded(share, 2));
      into.put("lost_percent", Findings.rounded(lost, 2));
      String text =
          String.format(
              Locale.ROOT,
              "50/50 %s-bound %.1f/%.1f, %.1f %% lost",
              kind,
              share,
              100 - share,
              lost);
      said.add(text);
      findings.line(
          "two tenants, %s; alone and bare %.1f a second, together %.1f and %.1f",
          text, alone.get(i), rates.get(0), rates.get(1));
      if (Math.abs(share - 50) > MOST_APART) {
        findings.failure(
            "two equal tenants, %s-bound: %.1f %% and %.1f %%", kind, share, 100 - share);
      }
      findings.expect(
          "percent lost by two tenants, " + kind + "-bound",
          lost,
          -100,
          MOST_LOST,
          "turns or batches cost more than they should");
    }
    both.forEach(Child::close);
    node.awaitNothingHeld(5);
    node.release("half1");
    node.release("half2");
    findings.at("tenants").put("said", String.join("; ", said));
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
