package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The sample programs with each of their ways to load the driver, bare and under a virtual GPU. */
public final class ProgramsStep implements Step {
  private static final double SECONDS = 12;

  private static final List<String> BINDINGS =
      List.of("dlsym", "dlsym-thread", "proc-address", "proc-address-v1", "proc-address-thread");
  private static final List<String> LAUNCHES = List.of("kernel", "ex", "cooperative", "graph");
  private static final List<String> MODES = List.of("malloc", "async", "vmm", "managed");

  private static List<List<String>> runs(boolean quick) {
    String seconds = quick ? "0.1" : "0.4";
    List<List<String>> runs = new ArrayList<>();
    runs.add(List.of("sgemm", "--json"));
    for (String binding : quick ? BINDINGS.subList(0, 1) : BINDINGS) {
      runs.add(spin(seconds, "--bind", binding));
    }
    for (String launch : LAUNCHES.subList(1, LAUNCHES.size())) {
      runs.add(spin(seconds, "--launch", launch));
    }
    runs.add(spin(seconds, "--grid", "4096", "--streams", "4", "--sync", "8"));
    for (String mode : MODES) {
      runs.add(
          List.of(
              "hoard", "--mode", mode, "--chunk", "64MiB", "--limit", "256MiB", "--check",
              "--json"));
    }
    runs.add(
        List.of(
            "burst",
            "--rate",
            "50",
            "--kernels",
            "4",
            "--us",
            "200",
            "--seconds",
            seconds,
            "--json"));
    if (Place.onPath("python3").isPresent()) {
      runs.add(List.of("spin.py", "--us", "200", "--seconds", seconds, "--json"));
    }
    return runs;
  }

  private static List<String> spin(String seconds, String... more) {
    List<String> command =
        new ArrayList<>(List.of("spin", "--us", "200", "--seconds", seconds, "--json"));
    command.addAll(List.of(more));
    return command;
  }

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    int good = 0;
    int all = 0;
    try (CheckNode node = CheckNode.open(place)) {
      Map<String, String> leased = node.lease("programs", place.quota(4, 40));
      findings.line("%-58s %-22s %s", "program", "bare", "under vgpu");
      for (List<String> command : runs(quick)) {
        Done bare = node.sample(CheckNode.BARE, SECONDS, command.toArray(String[]::new));
        Done held = node.sample(leased, SECONDS, command.toArray(String[]::new));
        String name = String.join(" ", command).replace(" --json", "");
        put(findings.at("runs", name, "bare"), bare);
        put(findings.at("runs", name, "vgpu"), held);
        findings.line("%-58s %-22s %s", name, word(bare), word(held));
        all++;
        if (bare.isOk() && held.isOk()) {
          good++;
        } else if (bare.isOk()) {
          // A program that fails without vgpu as well is the machine's problem, and only reported.
          findings.failure("%s fails only under vgpu: %s", name, held.why());
        }
      }
      double backMs = node.awaitNothingHeld(5);
      findings.at("after").put("all_back_ms", Findings.rounded(backMs, 1));
      if (backMs < 0) {
        findings.failure(
            "5 s after the last program the ledger still holds %d bytes", node.memoryHeld());
      }
    }
    findings.summary("%d of %d work bare and under vgpu", good, all);
  }

  private static String word(Done done) {
    return done.isOk()
        ? String.format(Locale.ROOT, "ok, %.2f s", done.seconds())
        : done.why().substring(0, Math.min(60, done.why().length()));
  }

  private static void put(ObjectNode into, Done done) {
    into.put("exit_code", done.exitCode()).put("seconds", Findings.rounded(done.seconds(), 3));
    into.set("said", done.json());
    if (!done.err().isBlank()) {
      into.put("stderr", done.err());
    }
  }
}
