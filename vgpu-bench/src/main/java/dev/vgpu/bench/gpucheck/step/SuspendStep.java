package dev.vgpu.bench.gpucheck.step;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.gpucheck.machine.CheckNode;
import dev.vgpu.bench.gpucheck.machine.Done;
import dev.vgpu.bench.gpucheck.machine.Findings;
import dev.vgpu.bench.gpucheck.machine.Place;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** How long suspending and resuming take: with the driver's own calls, and with vgpu. */
public final class SuspendStep implements Step {
  private static final double SECONDS = 30;
  private static final long GIB = 1L << 30;

  @Override
  public void run(Place place, Findings findings, boolean quick) throws Exception {
    List<String> said = new ArrayList<>();
    try (CheckNode node = CheckNode.open(place)) {
      // Memory of a stand-in's GPU is host memory: larger sizes tell nothing more.
      boolean isSmall = quick || place.isOverStandIn();
      for (long gib : isSmall ? new long[] {1} : new long[] {1, 4}) {
        said.add("driver " + byDriver(place, node, findings, gib));
      }
      boolean driverCan = findings.at("driver", "1 GiB").path("suspend_code").asInt(-1) == 0;
      said.add("vgpu " + byVgpu(place, node, findings, isSmall ? 1 : 4, driverCan));
    }
    findings.summary("%s", String.join("; ", said));
  }

  /** Without vgpu: lock, checkpoint, restore, unlock. */
  private static String byDriver(Place place, CheckNode node, Findings findings, long gib)
      throws InterruptedException {
    long bytes = place.quota(gib, 30).bytes();
    Child holder = holder(place, node, CheckNode.BARE, bytes);
    Child driver =
        node.start(CheckNode.BARE, "checkpoint", Long.toString(holder.pid())).awaitReady();
    ObjectNode into = findings.at("driver", gib + " GiB");
    double suspendMs = order(driver, "suspend", into);
    String result = "cannot: code " + into.path("suspend_code").asInt();
    if (into.path("suspend_code").asInt() == 0) {
      double resumeMs = order(driver, "resume", into);
      boolean same = holder.line().contains("as it was written");
      into.put("memory_kept", same);
      result =
          String.format(
              Locale.ROOT, "%d GiB: %.0f ms, back %.0f ms", bytes / GIB, suspendMs, resumeMs);
      if (!same) {
        findings.failure("a checkpoint changed the program's memory");
      }
    }
    findings.line("the driver's checkpoint, %s", result);
    driver.kill();
    holder.kill();
    return result;
  }

  /** A program that has written all its memory, and checks it once a second. */
  private static Child holder(
      Place place, CheckNode node, Map<String, String> environment, long bytes)
      throws InterruptedException {
    Child holder = node.start("hoard", place.hoard(bytes, "--check", "--hold", "4"), environment);
    holder.line();
    return holder;
  }

  private static double order(Child driver, String order, ObjectNode into)
      throws InterruptedException {
    driver.tell(order);
    double sumMs = 0;
    for (; ; ) {
      String line = driver.line();
      String[] words = line.split(" ", -1);
      if (words[0].equals("done")) {
        into.put(order + "_code", Integer.parseInt(words[2])).put(order + "_ms", sumMs);
        return sumMs;
      }
      double ms = Double.parseDouble(words[5]);
      into.putObject(order + "_" + words[1]).put("code", Integer.parseInt(words[3])).put("ms", ms);
      sumMs += ms;
    }
  }

  private static String byVgpu(
      Place place, CheckNode node, Findings findings, long gib, boolean driverCan)
      throws InterruptedException {
    Done help = command(node, "suspend", "--help");
    if (!help.isOk()) {
      findings.line("vgpu suspend is not in this build");
      return "suspend is not in this build";
    }
    Map<String, String> leased = node.lease("sleeper", place.quota(gib + 1, 40));
    String id = node.lease().path("id").asText();
    Child observer = node.start(CheckNode.BARE, "observe", "0").awaitReady();
    Child holder = holder(place, node, leased, place.quota(gib, 30).bytes());
    long before = observer.ask("read").whole("device_now");
    long beginNs = NanoClock.nanoTime();
    Done suspend = command(node, "suspend", id);
    double suspendMs = (NanoClock.nanoTime() - beginNs) / 1e6;
    Answer meanwhile = observer.ask("read");
    beginNs = NanoClock.nanoTime();
    Done resume = command(node, "resume", id);
    double resumeMs = (NanoClock.nanoTime() - beginNs) / 1e6;
    ObjectNode into = findings.at("vgpu", gib + " GiB");
    into.put("suspend_exit_code", suspend.exitCode()).put("suspend_err", suspend.err());
    into.put("resume_exit_code", resume.exitCode()).put("resume_err", resume.err());
    into.put("suspend_ms", suspendMs).put("resume_ms", resumeMs);
    into.put("freed_bytes", before - meanwhile.whole("device_now"));
    String result =
        suspend.isOk()
            ? String.format(
                Locale.ROOT,
                "%d GiB: %.0f ms (with a JVM's start), back %.0f ms, freed %.0f MiB",
                gib,
                suspendMs,
                resumeMs,
                (before - meanwhile.whole("device_now")) / 1048576.0)
            : "cannot: " + suspend.why();
    findings.line("vgpu suspend, %s", result);
    if (driverCan && !(suspend.isOk() && resume.isOk())) {
      findings.failure(
          "vgpu cannot suspend what the driver can: %s %s",
          suspend.err().strip(), resume.err().strip());
    } else if (suspend.isOk() && !holder.line().contains("as it was written")) {
      findings.failure("suspending changed the program's memory");
    }
    holder.kill();
    return result;
  }

  private static Done command(CheckNode node, String... arguments) throws InterruptedException {
    List<String> command = new ArrayList<>(Place.vgpu());
    command.addAll(List.of(arguments));
    return node.run(CheckNode.BARE, SECONDS, command);
  }
}
