package dev.vgpu.cli.doctor;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.machine.Machine;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.cli.text.DeviceTexts;
import dev.vgpu.cli.text.Words;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.watch.PhysicalGpu;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The findings of {@code vgpu doctor}, for people and for programs. */
final class DoctorReport {
  /**
   * The findings.
   *
   * @param properties further properties of each GPU
   * @param troubles what is wrong with each unhealthy GPU
   * @param choices the suitability of each backend on each GPU
   * @param leases one line each
   * @param events one line each
   * @param passedThrough calls that no backend gates, summed over all leases
   */
  record Findings(
      List<Check> checks,
      List<PhysicalGpu> gpus,
      Map<GpuId, Map<String, String>> properties,
      Map<GpuId, String> troubles,
      List<BackendChoice> choices,
      List<BackendStatus> backends,
      boolean onlyHost,
      List<String> leases,
      List<String> events,
      long passedThrough,
      List<String> problems) {}

  private final Findings findings;
  private final RunDirectory directory;
  private final Machine machine = Machine.current();

  DoctorReport(Findings findings, RunDirectory directory) {
    this.findings = findings;
    this.directory = directory;
  }

  void print(Console console) {
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
    findings.checks().forEach(check -> lines.add("  " + line(check)));
    addDevices(lines);
    lines.add("@|bold seat|@");
    lines.add("  " + directory.description());
    lines.add("@|bold providers and backends|@");
    for (BackendStatus status : findings.backends()) {
      lines.add("  " + line(status));
      status.notes().forEach(note -> lines.add("    " + note));
    }
    lines.add("");
    lines.add(
        findings.problems().isEmpty()
            ? "@|bold,green " + whatIsThere() + "|@"
            : "@|bold,red Missing:|@ " + String.join("; ", findings.problems()));
    int width = console.textWidth();
    lines.stream().flatMap(line -> Lines.whole(line, width).stream()).forEach(console::printStyled);
  }

  private String whatIsThere() {
    return findings.onlyHost()
        ? "Everything is there for calls in a JVM; programs need a GPU, and there is none."
        : "Everything needed is there.";
  }

  private void addDevices(List<String> lines) {
    lines.add("@|bold devices|@");
    for (PhysicalGpu gpu : findings.gpus()) {
      lines.add(
          "  "
              + gpu.id()
              + ": "
              + gpu.model()
              + ", "
              + DeviceTexts.gibibytes(gpu.usableMemory())
              + " for quotas");
      String trouble = findings.troubles().get(gpu.id());
      if (trouble != null) {
        lines.add("    @|yellow " + trouble + "|@");
      }
      modes(gpu.id()).forEach(mode -> lines.add("    " + mode));
      for (BackendChoice choice : of(gpu.id())) {
        lines.add("    " + choice.backend() + ": " + text(choice));
      }
    }
    if (findings.onlyHost() && !findings.gpus().isEmpty()) {
      lines.add("  " + DeviceTexts.HOST_EXPLAINED);
    }
    if (findings.passedThrough() > 0) {
      lines.add(
          "  @|yellow "
              + findings.passedThrough()
              + "|@ calls of driver functions that the hook does not know were let through");
    }
  }

  private List<BackendChoice> of(GpuId gpu) {
    return findings.choices().stream().filter(choice -> choice.gpu().equals(gpu)).toList();
  }

  /** The GPU modes that matter for sharing, and what to do about them. */
  private List<String> modes(GpuId gpu) {
    Map<String, String> known = findings.properties().getOrDefault(gpu, Map.of());
    List<String> lines = new ArrayList<>();
    if (known.containsKey("driver_version")) {
      lines.add("driver " + known.get("driver_version"));
    }
    if (known.containsKey("memory")) {
      lines.add(
          "its memory is "
              + known.get("memory")
              + ": quotas are parts of what the kernel reports as available, and any program may"
              + " take it meanwhile");
    }
    if ("off".equals(known.get("persistence_mode"))) {
      lines.add(
          "persistence mode is off: the first program waits until the driver has begun; as root:"
              + " nvidia-smi -pm 1, or run nvidia-persistenced");
    }
    switch (known.getOrDefault("compute_mode", "default")) {
      case "default" -> {}
      case "prohibited" ->
          lines.add(
              "compute mode is prohibited: no program may run on it; as root: nvidia-smi -c"
                  + " DEFAULT");
      default ->
          lines.add(
              "compute mode is "
                  + known.get("compute_mode")
                  + ": programs cannot share it but through MPS; as root: nvidia-smi -c DEFAULT");
    }
    if (known.containsKey("mig_mode")) {
      String pending = known.get("mig_pending");
      lines.add(
          "MIG mode is "
              + known.get("mig_mode")
              + (pending == null
                  ? ""
                  : ", and is to be " + pending + " when nothing uses the GPU, or it is reset"));
    }
    return lines;
  }

  private static boolean works(BackendChoice choice) {
    return choice.verdict() == BackendChoice.Verdict.CHOSEN
        || choice.verdict() == BackendChoice.Verdict.POSSIBLE;
  }

  private static String text(BackendChoice choice) {
    if (works(choice)) {
      return "available";
    }
    boolean later = choice.verdict() == BackendChoice.Verdict.NOT_NOW;
    return (later ? "not now: " : "no: ") + choice.reason();
  }

  private static String line(Check check) {
    String mark =
        switch (check.level()) {
          case GOOD -> "";
          case POOR -> "@|yellow poor|@, ";
          case BAD -> "@|bold,red bad|@, ";
        };
    return check.name()
        + ": "
        + mark
        + check.found()
        + (check.remedy().isEmpty() ? "" : "; " + check.remedy());
  }

  private static String line(BackendStatus status) {
    String text = status.unavailableBecause().map(reason -> "no: " + reason).orElse("available");
    String enforces = status.capabilities().map(DoctorReport::describe).orElse("");
    return status.name() + ": " + text + enforces;
  }

  private static String describe(Capabilities capabilities) {
    return " (" + capabilities + ")";
  }

  private void describe(PhysicalGpu gpu, ObjectNode row) {
    row.put("id", gpu.id().value()).put("model", gpu.model());
    gpu.unusableAsWhole().ifPresent(why -> row.put("unusable_as_whole", why));
    if (findings.troubles().containsKey(gpu.id())) {
      row.put("trouble", findings.troubles().get(gpu.id()));
    }
    ObjectNode known = row.putObject("properties");
    findings.properties().getOrDefault(gpu.id(), Map.of()).forEach(known::put);
    ArrayNode backends = row.putArray("backends");
    for (BackendChoice choice : of(gpu.id())) {
      ObjectNode one =
          backends.addObject().put("name", choice.backend()).put("available", works(choice));
      if (!works(choice)) {
        one.put("reason", choice.reason());
      }
    }
  }

  ObjectNode json() {
    ObjectNode json = JsonNodeFactory.instance.objectNode();
    json.put("ok", findings.problems().isEmpty());
    json.putObject("machine")
        .put("cpu", machine.cpu())
        .put("cores", machine.cores())
        .put("memory_bytes", machine.memoryBytes())
        .put("os", machine.os())
        .put("jdk", machine.jdk());
    json.putArray("devices");
    findings.gpus().forEach(gpu -> json.withArray("devices").add(gpu.id().value()));
    ArrayNode gpus = json.putArray("gpus");
    findings.gpus().forEach(gpu -> describe(gpu, gpus.addObject()));
    ArrayNode checks = json.putArray("checks");
    for (Check check : findings.checks()) {
      ObjectNode row =
          checks
              .addObject()
              .put("name", check.name())
              .put("level", Words.word(check.level()))
              .put("found", check.found());
      if (!check.remedy().isEmpty()) {
        row.put("remedy", check.remedy());
      }
    }
    json.put("calls_passed_through", findings.passedThrough());
    json.put("host_stands_for_cpu", findings.onlyHost() && !findings.gpus().isEmpty());
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
