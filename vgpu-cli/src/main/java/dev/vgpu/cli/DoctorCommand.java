package dev.vgpu.cli;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.BackendStatus;
import dev.vgpu.Capabilities;
import dev.vgpu.GpuPool;
import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.machine.Machine;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Help.Ansi;
import picocli.CommandLine.Mixin;

/** Says what works on this machine, and why the rest does not. */
@Command(
    name = "doctor",
    description = "Say what works on this machine, and why the rest does not.",
    footer = {
      "",
      "Exit codes: 0 everything needed is there, 1 something is missing, 2 wrong usage."
    })
final class DoctorCommand implements Callable<Integer> {
  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  DoctorCommand(CliContext context) {
    this.context = context;
  }

  /** What was found. */
  private record Findings(
      Machine machine,
      List<PhysicalGpu> gpus,
      List<BackendStatus> backends,
      boolean onlyHost,
      List<String> problems) {}

  @Override
  public Integer call() {
    Findings findings = examine();
    if (json.isGiven()) {
      JsonOption.print(context.console(), json(findings));
    } else {
      print(findings, context.console());
    }
    return findings.problems().isEmpty() ? 0 : 1;
  }

  private Findings examine() {
    Machine machine = Machine.current();
    try (GpuPool pool = context.pools().get()) {
      List<String> problems = new ArrayList<>();
      if (pool.gpus().isEmpty()) {
        problems.add("there is no device; see above why no provider found one");
      }
      if (pool.backends().stream().noneMatch(status -> status.capabilities().isPresent())) {
        problems.add("no backend can enforce a share; see above why not");
      }
      return new Findings(machine, pool.gpus(), pool.backends(), Devices.onlyHost(pool), problems);
    } catch (VgpuException | IllegalStateException e) {
      String problem = e.getMessage() == null ? e.toString() : e.getMessage();
      return new Findings(machine, List.of(), List.of(), false, List.of(problem));
    }
  }

  private void print(Findings findings, Console console) {
    Machine machine = findings.machine();
    List<String> lines = new ArrayList<>();
    lines.add("@|bold machine|@");
    lines.add(
        String.format(
            Locale.ROOT,
            "  %s, %d cores, %.1f GiB",
            machine.cpu(),
            machine.cores(),
            machine.memoryBytes() / (double) (1L << 30)));
    lines.add("  " + machine.os() + ", JDK " + machine.jdk());
    lines.add("@|bold devices|@");
    for (PhysicalGpu gpu : findings.gpus()) {
      lines.add(
          "  "
              + gpu.id()
              + ": "
              + gpu.model()
              + ", "
              + Devices.gibibytes(gpu.usableMemory())
              + " for quotas");
    }
    if (findings.onlyHost() && !findings.gpus().isEmpty()) {
      lines.add("  " + Devices.HOST_EXPLAINED);
    }
    lines.add("@|bold seat|@");
    lines.add("  " + RunDirectory.of(context.environment()).description());
    lines.add("@|bold providers and backends|@");
    for (BackendStatus status : findings.backends()) {
      lines.add("  " + line(status));
      status.notes().forEach(note -> lines.add("    " + note));
    }
    lines.add("");
    lines.add(
        findings.problems().isEmpty()
            ? "@|bold,green Everything needed is there.|@"
            : "@|bold,red Missing:|@ " + String.join("; ", findings.problems()));
    Ansi ansi = console.outAnsi();
    lines.forEach(line -> console.out().println(ansi.string(line)));
  }

  private static String line(BackendStatus status) {
    String text = status.unavailableBecause().map(reason -> "no: " + reason).orElse("available");
    String enforces = status.capabilities().map(DoctorCommand::describe).orElse("");
    return status.name() + ": " + text + enforces;
  }

  private static String describe(Capabilities capabilities) {
    return " (" + capabilities + ")";
  }

  private ObjectNode json(Findings findings) {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    Machine machine = findings.machine();
    json.put("ok", findings.problems().isEmpty());
    json.putObject("machine")
        .put("cpu", machine.cpu())
        .put("cores", machine.cores())
        .put("memory_bytes", machine.memoryBytes())
        .put("os", machine.os())
        .put("jdk", machine.jdk());
    json.putArray("devices");
    findings.gpus().forEach(gpu -> json.withArray("devices").add(gpu.id().value()));
    json.put("host_stands_for_cpu", findings.onlyHost() && !findings.gpus().isEmpty());
    RunDirectory directory = RunDirectory.of(context.environment());
    json.put("run_directory", directory.path().toString());
    directory.otherSeatHolder().ifPresent(pid -> json.put("seat_holder_pid", pid));
    json.putArray("backends");
    for (BackendStatus status : findings.backends()) {
      ObjectNode row =
          json.withArray("backends")
              .addObject()
              .put("name", status.name())
              .put("available", status.isAvailable());
      status.unavailableBecause().ifPresent(reason -> row.put("reason", reason));
      if (!status.notes().isEmpty()) {
        status.notes().forEach(row.putArray("notes")::add);
      }
      status.capabilities().ifPresent(enforces -> row.put("capabilities", enforces.toString()));
    }
    json.putArray("problems");
    findings.problems().forEach(json.withArray("problems")::add);
    return json;
  }
}
