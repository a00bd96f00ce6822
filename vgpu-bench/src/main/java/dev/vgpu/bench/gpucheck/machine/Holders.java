package dev.vgpu.bench.gpucheck.machine;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.harness.Answer;
import dev.vgpu.bench.harness.Child;
import dev.vgpu.bench.harness.NanoClock;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Programs that hold memory in ways in which the ledger may drift from NVML; compares both.
 * Confined to one thread.
 */
public final class Holders {
  private static final long MIB = 1 << 20;

  /** How much a program of each kind allocates itself: the value in the C program. */
  private static final long HELD = 64 * MIB;

  private static final long VARIABLE = 48 * MIB;

  /** The accepted difference: pieces of 2 MiB, and memory that the driver takes for itself. */
  private static final long TOLERANCE = 32 * MIB;

  /** The hook measures again a second after a change. */
  private static final double SETTLES_MS = 2_500;

  private final CheckNode node;
  private final Findings findings;
  private final Map<String, String> leased;
  private final Child observer;
  private final long idleBytes;
  private final long idleProcesses;
  private long plain;

  /** Reads what the GPU holds before the first program. */
  public Holders(CheckNode node, Findings findings, Map<String, String> leased, Child observer)
      throws InterruptedException {
    this.node = node;
    this.findings = findings;
    this.leased = leased;
    this.observer = observer;
    Answer idle = observer.ask("read");
    this.idleBytes = idle.whole("now");
    this.idleProcesses = idle.whole("processes");
  }

  /** Runs one program of each kind; if quick, only kinds that yield emulator settings. */
  public void run(boolean quick) throws InterruptedException {
    findings.line(
        "%-44s%12s%12s%12s", "one program: ledger and NVML, MiB", "ledger", "NVML", "off");
    plain = compare("plain", "a context and 64 MiB", List.of("memory", "plain"));
    findings.at("ledger", "plain").put("context_bytes", plain > 0 ? Math.max(0, plain - HELD) : 0);
    compare("thread", "cuInit in another thread", List.of("memory", "thread"));
    long modules = compare("modules", "a module of 48 MiB", List.of("memory", "modules"));
    findings
        .at("ledger", "modules")
        .put("module_bytes", withoutVariable(modules > 0 ? Math.max(0, modules - plain) : 0));
    if (!quick) {
      ipc();
    }
    compare("aside", "in a pid namespace of its own", List.of("aside", "memory", "plain"));
  }

  private void ipc() throws InterruptedException {
    String file = node.node().file("handle").toString();
    compare(
        "ipc",
        "256 MiB, and who opens them by IPC",
        List.of("memory", "export", file),
        List.of("memory", "import", file));
  }

  /** The size of the module without its variable, if that is counted. */
  private static long withoutVariable(long bytes) {
    return bytes < VARIABLE ? bytes : bytes - VARIABLE;
  }

  /** What NVML reports for it; 0 if it cannot be run, or NVML reports nothing. */
  @SafeVarargs
  private long compare(String key, String what, List<String>... commands)
      throws InterruptedException {
    ObjectNode into = findings.at("ledger", key);
    List<Child> programs = new ArrayList<>();
    try {
      for (List<String> command : commands) {
        Child program = node.start(leased, command.toArray(String[]::new));
        programs.add(program);
        program.awaitReady();
      }
    } catch (IllegalStateException e) {
      String why = String.valueOf(e.getMessage());
      into.put("error", why);
      end(programs);
      if (key.equals("aside") && why.contains("unshare")) {
        findings.line("  %-42s not allowed here: %s", what, why);
      } else {
        findings.failure("%s: %s", what, why);
      }
      return 0;
    }
    long nvml = settled(into);
    long ledger = node.memoryHeld();
    long processes = observer.ask("read").whole("processes") - idleProcesses;
    into.put("ledger_bytes", ledger).put("nvml_bytes", nvml).put("nvml_processes", processes);
    if (processes > 0) {
      into.put("told_by_thread", !isTold(programs.get(0).pid()));
    }
    findings.line(
        "  %-42s%12.1f%12.1f%12.1f",
        what, ledger / (double) MIB, nvml / (double) MIB, (ledger - nvml) / (double) MIB);
    end(programs);
    tell(key, what, ledger, nvml, processes);
    return nvml;
  }

  private void tell(String key, String what, long ledger, long nvml, long processes) {
    if (processes <= 0 || nvml <= 0) {
      findings.line("  NVML tells of no such process: so it is charged the set size");
    } else if (!key.equals("aside") && Math.abs(ledger - nvml) > TOLERANCE) {
      findings.failure(
          "%s: the ledger says %.1f MiB and NVML %.1f MiB",
          what, ledger / (double) MIB, nvml / (double) MIB);
    }
  }

  /** Waits until both agree, or until the time for that is over. */
  private long settled(ObjectNode into) throws InterruptedException {
    long beginNs = NanoClock.nanoTime();
    double ms = 0;
    long nvml = 0;
    while (ms < SETTLES_MS) {
      nvml = observer.ask("read").whole("now") - idleBytes;
      ms = (NanoClock.nanoTime() - beginNs) / 1e6;
      if (nvml > 0 && Math.abs(node.memoryHeld() - nvml) <= TOLERANCE) {
        break;
      }
      NanoClock.sleepMillis(20);
    }
    into.put("settled_ms", Findings.rounded(ms, 1));
    return nvml;
  }

  private boolean isTold(long pid) throws InterruptedException {
    return observer.ask("has " + pid).whole("has") == 1;
  }

  private void end(List<Child> programs) throws InterruptedException {
    for (Child program : programs) {
      program.kill();
    }
    if (node.awaitNothingHeld(5) < 0) {
      findings.failure("5 s after its end the ledger still holds %d bytes", node.memoryHeld());
    }
  }
}
