package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.NvidiaSmi;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.gpucheck.rm.InterposerReport;
import dev.vgpu.bench.gpucheck.rm.StoppedWork;
import dev.vgpu.bench.harness.Child;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;

/**
 * What the kernel module needs of the driver: that all memory passes its ledger, here as a
 * preloaded library, and that another process may stop a program's channels. And what {@code
 * vgpu-turns} does without the module.
 */
public final class RmStep implements Step {
  /** For a program, and for the compiler on a slow machine; the step's own limit is shorter. */
  private static final double SECONDS = 60;

  private static final double MIB = 1 << 20;
  private static final int SLICE_US = 500;
  private static final int PREEMPTS = 100;

  /** More than the context buffers of any known GPU. */
  private static final double MOST_ABOVE_MIB = 1024;

  private static final String MODULE_CANNOT = "the kernel module cannot stop tenants by it";

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    List<String> said = new ArrayList<>();
    try (CheckNode node = CheckNode.open(place)) {
      Path library = library(place);
      said.add(ledger(place, node, findings, library));
      said.add("itself " + channels(place, node, findings, false, quick));
      said.add("another process " + channels(place, node, findings, true, quick));
      said.add("vgpu-turns " + TurnsRows.run(place, node, findings, quick, library));
    }
    findings.summary("%s", String.join("; ", said));
  }

  /** Tells why a part does not apply; on a real driver that is not as expected. */
  private static String missing(Place place, Findings findings, String what, String why) {
    if (place.isOverStandIn()) {
      findings.line("%s: not on this machine, because %s", what, why);
    } else {
      findings.expect(what + " could be tried", 0, 1, 1, "it is not known: " + why);
    }
    return "not on this machine";
  }

  // ---- the ledger

  private static String ledger(Place place, CheckNode node, Findings findings, Path library)
      throws IOException, InterruptedException {
    Path report = place.work().resolve("rm-report");
    Map<String, String> preloaded = new HashMap<>(NvmlStep.here());
    preloaded.put("LD_PRELOAD", library.toString());
    preloaded.put("VGPU_RM_REPORT", report.toString());
    long bytes = place.quota(1, 20).bytes();
    Child holder = node.start("hoard", place.hoard(bytes, "--hold", "60"), preloaded);
    holder.line();
    InterposerReport held = InterposerReport.read(report);
    ObjectNode into = findings.at("ledger");
    into.put("used_bytes", held.usedBytes()).put("allocations", held.allocations());
    into.put("asked_bytes", bytes);
    String told = "none";
    if (held.allocations() == 0) {
      told =
          missing(place, findings, "the ledger", "no driver's call passed the preloaded library");
    } else {
      told = besideSmi(place, findings, into, held, holder.pid());
      if (held.usedBytes() < bytes) {
        findings.failure(
            "the ledger has %d bytes of a program that holds %d", held.usedBytes(), bytes);
      }
    }
    holder.kill();
    if (held.allocations() > 0) {
      preloaded.put("VGPU_RM_LIMIT", Long.toString(bytes));
      Done done = node.run(preloaded, SECONDS, place.hoard(2 * bytes, "--least", "2MiB"));
      long most = InterposerReport.read(report).peakBytes();
      findings
          .at("limit")
          .put("limit_bytes", bytes)
          .put("peak_bytes", most)
          .set("said", done.json());
      findings.line("with a limit of %.1f MiB the ledger reached %.1f", bytes / MIB, most / MIB);
      long got = done.json().path("bytes").asLong();
      if (most > bytes || got > bytes) {
        findings.failure(
            "of a limit of %d bytes the program held %d, the ledger had %d", bytes, got, most);
      }
    }
    return "ledger " + told;
  }

  private static String besideSmi(
      Place place, Findings findings, ObjectNode into, InterposerReport held, long pid)
      throws InterruptedException {
    Optional<NvidiaSmi> smi = NvidiaSmi.find(place.work());
    String size = null;
    if (smi.isPresent()) {
      for (Map<Long, String> processes : smi.get().processes().values()) {
        size = processes.getOrDefault(pid, size);
      }
    }
    if (size == null || !size.matches("[0-9]{1,9}")) {
      return missing(
          place, findings, "the ledger", "nvidia-smi does not tell the program's memory");
    }
    double above = Double.parseDouble(size) - held.usedBytes() / MIB;
    into.put("nvidia_smi_mib", Integer.parseInt(size));
    findings.line("ledger %.1f MiB, nvidia-smi %s MiB", held.usedBytes() / MIB, size);
    findings.expect(
        "MiB that nvidia-smi shows above the ledger, which are the context's",
        above,
        0,
        MOST_ABOVE_MIB,
        "memory passes the kernel module uncounted, or is counted twice");
    return String.format(Locale.ROOT, "%.0f MiB below nvidia-smi", above);
  }

  /** The library of the bundle, or a new one, compiled like the check's own program. */
  private static Path library(Place place) throws IOException, InterruptedException {
    String name = "libvgpu_rm.so";
    Path bundled = place.sample(name);
    if (place.isBundle() && Files.exists(bundled)) {
      return bundled;
    }
    Path script = place.home().resolve("vgpu-kmod/src/main/c/user/build.sh");
    Done done =
        Done.run(
            List.of("sh", script.toString(), place.work().toString()),
            variables -> {},
            place.work(),
            SECONDS);
    if (!done.isOk()) {
      throw new IllegalStateException(name + " cannot be compiled: " + done.why());
    }
    return place.work().resolve(name);
  }

  // ---- channels

  private static String channels(
      Place place, CheckNode node, Findings findings, boolean isOther, boolean quick)
      throws InterruptedException {
    String who = isOther ? "another process" : "the program itself";
    String file = place.work().resolve("rm-channels").toString();
    Child program = node.start(CheckNode.BARE, "channels", file);
    try {
      program.awaitReady();
      Child caller = program;
      if (isOther) {
        caller =
            node.start(CheckNode.BARE, "stop", file, Long.toString(program.pid())).awaitReady();
      }
      return tell(place, findings, new StoppedWork(program, caller), isOther, quick);
    } catch (IllegalStateException e) {
      return missing(place, findings, who, String.valueOf(e.getMessage()));
    } finally {
      program.kill(); // the driver frees channels that may still be stopped
    }
  }

  private static String tell(
      Place place, Findings findings, StoppedWork work, boolean isOther, boolean quick)
      throws InterruptedException {
    String who = isOther ? "another process" : "the program itself";
    ObjectNode into = findings.at("channels", isOther ? "other" : "own");
    StoppedWork.Outcome slice = work.slice(SLICE_US);
    if (isOther && slice.isNoDriversFile()) {
      foreign(findings, work, into, quick);
      return missing(
          place, findings, who, "the stand-in's resource manager is a part of each process");
    }
    expectDone(findings, who + ": SET_TIMESLICE", slice);
    if (slice.isDone()) {
      long after = slice.line().whole("after_us");
      into.put("slice_us", after).put("slice_before_us", slice.line().whole("before_us"));
      findings.expect(
          who + ": us of a time slice of " + SLICE_US,
          (double) after,
          SLICE_US,
          SLICE_US,
          MODULE_CANNOT);
    }
    StoppedWork.Outcome preempt = work.preempt(quick ? PREEMPTS / 10 : PREEMPTS);
    expectDone(findings, who + ": PREEMPT", preempt);
    double us = preempt.isDone() ? preempt.line().number("p50_ns") / 1e3 : 0;
    into.put("preempt_p50_us", Findings.rounded(us, 1));
    findings.line("%s: PREEMPT, p50 %.1f us", who, us);
    trial(findings, work, who, "schedule", into, quick);
    boolean stops = attempt(findings, work, who, "channels", into, quick);
    if (isOther) {
      foreign(findings, work, into, quick);
    }
    return String.format(
        Locale.ROOT,
        "FIFO_DISABLE_CHANNELS %s, PREEMPT %.0f us",
        stops ? "stops" : "does NOT stop",
        us);
  }

  private static void expectDone(Findings findings, String what, StoppedWork.Outcome outcome) {
    if (outcome.status() < 0) {
      findings.line("%s: %s", what, outcome.words());
    }
    findings.expect(what + ", the driver's status", (double) outcome.status(), 0, 0, MODULE_CANNOT);
  }

  private static boolean attempt(
      Findings findings,
      StoppedWork work,
      String who,
      String method,
      ObjectNode into,
      boolean quick)
      throws InterruptedException {
    StoppedWork.Trial trial = trial(findings, work, who, method, into, quick);
    expectDone(findings, who + ": stop by " + method, trial.stop());
    findings.expect(
        who + ": kernels that ended while stopped by " + method,
        (double) trial.kernels(),
        0,
        0,
        MODULE_CANNOT);
    findings.expect(
        who + ": resumed after a stop by " + method,
        trial.hasResumed() ? 1 : 0,
        1,
        1,
        "a stopped tenant would stand for ever");
    return trial.stop().isDone() && trial.kernels() == 0 && trial.hasResumed();
  }

  private static StoppedWork.Trial trial(
      Findings findings,
      StoppedWork work,
      String who,
      String method,
      ObjectNode into,
      boolean quick)
      throws InterruptedException {
    StoppedWork.Trial trial = work.attempt(method, quick ? 50 : 200);
    findings.line(
        "%s: %-9s %s in %.1f us, %d kernels ended meanwhile, resumed: %s",
        who,
        method,
        trial.stop().words(),
        trial.stopUs(),
        trial.kernels(),
        trial.hasResumed() ? "yes" : "NO");
    into.putObject(method)
        .put("status", trial.stop().status())
        .put("errno", trial.stop().errno())
        .put("stop_us", Findings.rounded(trial.stopUs(), 1))
        .put("kernels_meanwhile", trial.kernels())
        .put("resume_status", trial.resume().status())
        .put("resumed", trial.hasResumed());
    findings.write();
    return trial;
  }

  /**
   * Lists the program's channels in a call of another client. If the driver takes that, only the
   * filters of the hook and of the kernel module keep tenants from stopping each other. A driver
   * that compares the clients answers 35 (invalid client).
   */
  private static void foreign(Findings findings, StoppedWork work, ObjectNode into, boolean quick)
      throws InterruptedException {
    StoppedWork.Trial trial = trial(findings, work, "another process", "foreign", into, quick);
    if (trial.stop().isDone()) {
      findings.line(
          "the driver lets any client stop another one's channels: vgpu's filters are needed");
    }
  }
}
