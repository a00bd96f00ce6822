package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Holders;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import dev.vgpu.request.MemorySize;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Whether quotas hold for each way of allocating, and how the ledger compares with NVML. */
public final class QuotaStep implements Step {
  private static final double SECONDS = 20;
  private static final long MIB = 1 << 20;
  private static final int PROCESSES = 4;

  /** What NVML may still report for a process that has ended. */
  private static final long RESIDUE = 4 * MIB;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    try (CheckNode node = CheckNode.open(place)) {
      MemorySize quota = place.quota(4, 25);
      Map<String, String> leased = node.lease("quota", quota);
      Child observer =
          node.start(CheckNode.BARE, "observe", Long.toString(quota.bytes())).awaitReady();
      int exact = fill(node, findings, leased, quota);
      long apart = ledger(place, node, findings, leased, observer, quick);
      new Holders(node, findings, leased, observer).run(quick);
      long over = churn(node, findings, leased, observer, quota, quick ? 500 : 4_000);
      findings.summary(
          "%d of 4 ways held to the quota, 4 x 4 churn %d bytes over, NVML shows %.0f MiB more than"
              + " the ledger",
          exact, over, apart / (double) MIB);
    }
  }

  private static int fill(
      CheckNode node, Findings findings, Map<String, String> leased, MemorySize quota)
      throws InterruptedException {
    int exact = 0;
    findings.line("fill until refused, quota %s", quota);
    for (String mode : List.of("malloc", "async", "vmm", "managed")) {
      // Never more than twice the quota: a card that runs out of managed memory hangs.
      Done done =
          node.sample(
              leased,
              SECONDS,
              "hoard",
              "--mode",
              mode,
              "--chunk",
              "64MiB",
              "--least",
              "2MiB",
              "--limit",
              Long.toString(quota.bytes() * 2),
              "--json");
      JsonNode said = done.json();
      long held = said.path("bytes").asLong();
      ObjectNode into = findings.at("fill", mode);
      into.put("exit_code", done.exitCode()).put("stderr", done.err()).set("said", said);
      findings.line(
          "  %-8s %8.1f MiB, then %s; shown total %.1f MiB, free after %.1f MiB",
          mode,
          held / (double) MIB,
          said.path("refusal").asText(done.why()),
          said.path("total_before").asLong() / (double) MIB,
          said.path("free_after").asLong() / (double) MIB);
      if (held > quota.bytes()) {
        findings.failure("%s got %d bytes of a quota of %d", mode, held, quota.bytes());
      } else if (!done.isOk()
          || !said.path("refusal").asText().equals("CUDA_ERROR_OUT_OF_MEMORY")) {
        findings.failure(
            "%s did not end by running out of memory: %s",
            mode, said.path("refusal").asText(done.why()));
      } else {
        exact++;
      }
    }
    return exact;
  }

  /** The largest excess of NVML's figure over the ledger's, for a program that holds memory. */
  private static long ledger(
      Place place,
      CheckNode node,
      Findings findings,
      Map<String, String> leased,
      Child observer,
      boolean quick)
      throws InterruptedException {
    long most = 0;
    long idle = observer.ask("read").whole("device_now");
    findings.at("ledger").put("device_idle_bytes", idle);
    findings.line("one program: ledger, NVML's process list, the GPU's memory in use (MiB)");
    for (long bytes : quick ? new long[] {64 * MIB} : new long[] {2 * MIB, 256 * MIB, 2048 * MIB}) {
      Child holder = node.start("hoard", place.hoard(bytes, "--hold", "60"), leased);
      holder.line();
      NanoClock.sleepMillis(150);
      Answer nvml = observer.ask("read");
      long held = node.memoryHeld();
      long device = nvml.whole("device_now") - idle;
      findings.line(
          "  %8.1f asked: %10.1f %10.1f %10.1f",
          bytes / (double) MIB,
          held / (double) MIB,
          nvml.number("now") / MIB,
          device / (double) MIB);
      ObjectNode into = findings.at("ledger", Long.toString(bytes));
      into.put("ledger_bytes", held).put("nvml_processes_bytes", nvml.number("now"));
      into.put("device_bytes", device).put("nvml_processes", nvml.whole("processes"));
      if (held < bytes) {
        findings.failure("the ledger has %d bytes of a program that holds %d", held, bytes);
      }
      most = Math.max(most, device - held);
      long beginNs = NanoClock.nanoTime();
      holder.kill();
      double ledgerMs = node.awaitNothingHeld(5);
      double deviceMs = awaitDevice(observer, idle + RESIDUE, beginNs);
      into.put("killed_ledger_ms", ledgerMs).put("killed_device_ms", deviceMs);
      findings.line(
          "           killed: the ledger had it back %.0f ms later, the GPU %.0f ms",
          ledgerMs, deviceMs);
    }
    return most;
  }

  private static double awaitDevice(Child observer, long bytes, long beginNs)
      throws InterruptedException {
    double ms = 0;
    while (ms < 5_000) {
      boolean back = observer.ask("read").whole("device_now") <= bytes;
      ms = (NanoClock.nanoTime() - beginNs) / 1e6;
      if (back) {
        return ms;
      }
      NanoClock.sleepMillis(5);
    }
    return -1;
  }

  private static long churn(
      CheckNode node,
      Findings findings,
      Map<String, String> leased,
      Child observer,
      MemorySize quota,
      long ms)
      throws InterruptedException {
    List<Child> programs = new ArrayList<>();
    String witness = node.node().file("witness").toString();
    for (int i = 0; i < PROCESSES; i++) {
      programs.add(
          node.start(
              leased, "churn", Long.toString(quota.bytes()), "4", witness, Integer.toString(i)));
    }
    for (Child program : programs) {
      program.awaitReady();
    }
    for (Child program : programs) {
      program.ask("churn");
    }
    NanoClock.sleepMillis(ms);
    long allocated = 0;
    long refused = 0;
    long peak = 0;
    for (Child program : programs) {
      Answer answer = program.ask("stop");
      allocated += answer.whole("allocated");
      refused += answer.whole("refused");
      peak = answer.whole("peak");
      if (answer.whole("error") != 0) {
        findings.failure("a churning program got error %d", answer.whole("error"));
      }
    }
    long over = Math.max(0, peak - quota.bytes());
    Answer nvml = observer.ask("read");
    findings
        .at("churn")
        .put("allocations", allocated)
        .put("refused", refused)
        .put("witness_peak_bytes", peak)
        .put("over_bytes", over)
        .put("nvml_peak_bytes", nvml.number("peak"));
    findings.line(
        "churn, %d processes of 4 threads: %d allocations, %d refused, at most %.1f MiB at once",
        PROCESSES, allocated, refused, peak / (double) MIB);
    if (over > 0) {
      findings.failure("%d bytes were held above a quota of %d", over, quota.bytes());
    }
    for (Child program : programs) {
      program.kill();
    }
    return over;
  }
}
