package dev.vgpu.cli.doctor;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.cli.text.DeviceTexts;
import dev.vgpu.cli.text.EventTexts;
import dev.vgpu.cli.text.Words;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuHealth;
import dev.vgpu.watch.GpuLease;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.GpuState;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** Reports what works on this machine, and why the rest does not. */
@Command(
    name = "doctor",
    description = "Say what works on this machine, and why the rest does not.",
    footer = {
      "",
      "Exit codes: 0 everything needed is there, 1 something is missing, 2 wrong usage."
    })
public final class DoctorCommand implements Callable<Integer> {
  /** A quota that programs take: some backends serve none that is less than a CUDA context. */
  private static final MemorySize USUAL_QUOTA = MemorySize.ofGibibytes(1);

  /** They serve fixed shares only. */
  private static final String GREEN_CONTEXTS = "green-contexts";

  private static final int SOME_PERCENT = 50;

  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  @Option(
      names = "--bundle",
      paramLabel = "FILE",
      description =
          "Also write what was found, the leases, the last events and the settings in the"
              + " environment to a ZIP file, for a report. It holds no other variable, no program's"
              + " arguments, and neither the name of the user, that of who called sudo,"
              + " nor the host's.")
  private @Nullable Path bundle;

  /** Creates the command. */
  public DoctorCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException {
    DoctorReport.Findings findings = examine();
    DoctorReport report = new DoctorReport(findings, RunDirectory.of(context.environment()));
    if (json.isGiven()) {
      JsonOption.print(context.console(), report.json());
    } else {
      report.print(context.console());
    }
    if (bundle != null) {
      write(bundle, report, findings);
    }
    return findings.problems().isEmpty() ? 0 : 1;
  }

  private void write(Path file, DoctorReport report, DoctorReport.Findings findings)
      throws UserException {
    Bundle made =
        new Bundle(context.environment(), hostName())
            .add("doctor.json", report.json().toPrettyString() + "\n")
            .add("leases.txt", lines(findings.leases()))
            .add("events.txt", lines(findings.events()))
            .addEnvironment()
            .addListing(RunDirectory.of(context.environment()).path());
    try {
      made.write(file);
    } catch (IOException e) {
      throw new UserException(
          "cannot write " + file + ": " + UserException.reason(e) + "; name a new file", e);
    }
    context.console().err().println("wrote " + file + ": " + String.join(", ", made.names()));
  }

  private static String lines(List<String> lines) {
    return lines.isEmpty() ? "none\n" : String.join("\n", lines) + "\n";
  }

  private static String hostName() {
    try {
      return Files.readString(Path.of("/proc/sys/kernel/hostname"), UTF_8).strip();
    } catch (IOException e) {
      return "";
    }
  }

  private DoctorReport.Findings examine() {
    List<Check> checks = new HostChecks(Path.of("/")).all();
    List<String> problems = new ArrayList<>();
    for (Check check : checks) {
      if (check.level() == Check.Level.BAD) {
        problems.add(check.name() + ": " + check.found() + " (" + check.remedy() + ")");
      }
    }
    try (GpuPool pool = context.pools().get()) {
      if (pool.gpus().isEmpty()) {
        problems.add("there is no device; see above why no provider found one");
      }
      List<BackendStatus> backends = pool.backends();
      if (backends.stream().noneMatch(status -> status.capabilities().isPresent())) {
        problems.add("no backend can enforce a share; see above why not");
      }
      problems.addAll(DriverFaults.of(backends));
      List<BackendChoice> choices = choices(pool);
      if (!choices.isEmpty() && choices.stream().allMatch(DoctorCommand::isImpossible)) {
        problems.add("no backend can share a GPU that is here; see above why not");
      }
      List<GpuReading> readings = pool.readings();
      return new DoctorReport.Findings(
          checks,
          pool.gpus(),
          properties(readings),
          troubles(pool, readings, problems),
          choices,
          backends,
          DeviceTexts.onlyHost(pool),
          pool.leases().stream().map(DoctorCommand::lease).toList(),
          pool.recentEvents().stream().map(EventTexts::line).toList(),
          pool.leases().stream().mapToLong(GpuLease::passedThrough).sum(),
          problems);
    } catch (VgpuException | IllegalStateException e) {
      String said = e.getMessage() == null ? e.toString() : e.getMessage();
      problems.add(DriverFaults.withRemedy(said));
      return new DoctorReport.Findings(
          checks, List.of(), Map.of(), Map.of(), List.of(), List.of(), false, List.of(), List.of(),
          0, problems);
    }
  }

  /** The verdict on each backend, for a request of the kind that it can serve. */
  private static List<BackendChoice> choices(GpuPool pool) {
    VirtualGpuRequest.Builder request =
        VirtualGpuRequest.builder().name("doctor").memory(quota(pool.gpus()));
    List<BackendChoice> choices = new ArrayList<>(pool.explain(request.build()));
    request.policy(SharePolicy.FIXED_SHARE).computePercent(SOME_PERCENT);
    for (BackendChoice fixed : pool.explain(request.build())) {
      if (fixed.backend().equals(GREEN_CONTEXTS)) {
        choices.replaceAll(
            choice ->
                choice.backend().equals(GREEN_CONTEXTS) && choice.gpu().equals(fixed.gpu())
                    ? fixed
                    : choice);
      }
    }
    return choices;
  }

  /** The usual quota, or what the smallest GPU has, if that is less. */
  private static MemorySize quota(List<PhysicalGpu> gpus) {
    return gpus.stream()
        .map(PhysicalGpu::usableMemory)
        .filter(usable -> usable.bytes() > 0 && usable.compareTo(USUAL_QUOTA) < 0)
        .min(Comparator.naturalOrder())
        .orElse(USUAL_QUOTA);
  }

  private static boolean isImpossible(BackendChoice choice) {
    return choice.verdict() == BackendChoice.Verdict.IMPOSSIBLE;
  }

  /** Properties as far as the driver reports them. A failed reading does not fail the report. */
  private static Map<GpuId, Map<String, String>> properties(List<GpuReading> readings) {
    Map<GpuId, Map<String, String>> properties = new HashMap<>();
    readings.forEach(reading -> properties.put(reading.gpu(), reading.properties()));
    return properties;
  }

  /** Problems of GPUs. A lost GPU is a problem; a fault that the GPU survives is not. */
  private static Map<GpuId, String> troubles(
      GpuPool pool, List<GpuReading> readings, List<String> problems) {
    Map<GpuId, String> troubles = new HashMap<>();
    for (PhysicalGpu gpu : pool.gpus()) {
      GpuReading reading = of(gpu, readings, GpuReading::gpu);
      GpuState state = of(gpu, pool.states(), GpuState::gpu);
      DeviceTexts.trouble(reading, state)
          .ifPresent(
              trouble -> {
                troubles.put(gpu.id(), trouble);
                if (DeviceTexts.health(reading, state) == GpuHealth.LOST) {
                  problems.add(DriverFaults.withRemedy(gpu.id() + " is " + trouble));
                }
              });
    }
    return troubles;
  }

  private static <T> @Nullable T of(PhysicalGpu gpu, List<T> all, Function<T, GpuId> whose) {
    return all.stream().filter(each -> whose.apply(each).equals(gpu.id())).findFirst().orElse(null);
  }

  private static String lease(GpuLease lease) {
    return lease.id()
        + " gpus="
        + lease.gpus()
        + " backend="
        + lease.backend().orElse("none")
        + " "
        + lease.request()
        + " processes="
        + lease.processes().size()
        + " passedThrough="
        + lease.passedThrough()
        + " preemption="
        + lease.preemption().map(Words::word).orElse("none")
        + lease.preemptionReason().map(reason -> " (" + reason + ")").orElse("")
        + " suspended="
        + lease.isSuspended();
  }
}
