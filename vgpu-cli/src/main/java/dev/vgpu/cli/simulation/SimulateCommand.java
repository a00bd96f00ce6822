package dev.vgpu.cli.simulation;

import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Progress;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.Machine;
import dev.vgpu.cli.machine.VersionText;
import dev.vgpu.cli.report.HtmlReport;
import dev.vgpu.cli.report.ReportFile;
import dev.vgpu.simulation.MixResult;
import dev.vgpu.simulation.Simulation;
import java.nio.file.Path;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs a mix, described by a file, through the scheduler in virtual time. */
@Command(
    name = "simulate",
    description = {
      "Run a described mix of tenants through the scheduler, in virtual time.",
      "",
      "The file, in YAML or JSON, says which GPUs there are, who shares them on what terms, and when"
          + " requests of which kernels come. The same file and seed give the same result. Nothing"
          + " runs on a GPU. vgpu-cli/README.md describes the file; samples/simulations has"
          + " examples."
    },
    footer = {"", "Exit codes: 0 done, 1 failed, 2 wrong usage."})
public final class SimulateCommand implements Callable<Integer> {
  private static final Duration SHORTEST = Duration.ofMillis(50);
  private static final Duration LONGEST = Duration.ofDays(31);

  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Parameters(paramLabel = "FILE", description = "What is simulated.")
  private Path file;

  @Mixin private final JsonOption json = new JsonOption();

  @Option(
      names = "--seed",
      paramLabel = "NUMBER",
      description = "Where chance begins. Default: what the file says, or 1.")
  private @Nullable Long seed;

  @Option(
      names = "--duration",
      paramLabel = "TIME",
      description =
          "How much virtual time passes, for example 90s or 2h. Default: what the file says, or"
              + " 60s.")
  private @Nullable Duration duration;

  @Option(names = "--report", paramLabel = "FILE", description = "Write a report in HTML there.")
  private @Nullable Path report;

  /** Creates the command. */
  public SimulateCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException {
    if (duration != null && (duration.compareTo(SHORTEST) < 0 || duration.compareTo(LONGEST) > 0)) {
      throw new ParameterException(
          spec.commandLine(), "--duration is not within 50ms to 744h: " + duration);
    }
    MixFile mix = MixFile.read(file, new MixFile.Overrides(seed, duration));
    ReportFile html = report == null ? null : ReportFile.prepare(report);
    long startNs = context.clock().nowNs();
    MixResult result;
    try (Progress progress = new Progress(context.console(), context.clock(), 1)) {
      result = run(mix, progress);
    }
    long tookNs = Math.max(1, context.clock().nowNs() - startNs);
    ObjectNode figures = SimulationJson.of(mix.title(), result, tookNs);
    describeRun(figures);
    if (html != null) {
      html.write(
          HtmlReport.of(
              SimulateCommand.class, "simulation", SimulationJson.report(figures, result)));
      figures.put("report", html.path().toString());
    }
    print(figures, new SimulationText(mix.title(), result, tookNs), html);
    return 0;
  }

  private MixResult run(MixFile mix, Progress progress) {
    progress.begin("simulating " + mix.title());
    Duration all = Duration.ofNanos(mix.mix().durationNs()).multipliedBy(mix.mix().gpus().size());
    return Simulation.run(mix.mix(), passedNs -> progress.tick(passedNs, all));
  }

  private void print(ObjectNode figures, SimulationText text, @Nullable ReportFile html) {
    Console console = context.console();
    if (json.isGiven()) {
      JsonOption.print(console, figures);
      return;
    }
    text.lines().forEach(console.out()::println);
    if (html != null) {
      console.out().println("report: " + html.path());
    }
  }

  private void describeRun(ObjectNode figures) {
    figures.put("file", file.toString());
    figures.put("machine", Machine.current().description());
    figures.put("version", VersionText.version());
    figures.put("commit", VersionText.commit(context.environment()));
    figures.put("date", context.clock().wallTime().truncatedTo(ChronoUnit.SECONDS).toString());
  }
}
