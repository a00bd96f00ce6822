package dev.vgpu.bench.demo;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.bench.demo.figure.DemoJson;
import dev.vgpu.bench.demo.figure.DemoOptions;
import dev.vgpu.bench.demo.figure.DemoResults;
import dev.vgpu.bench.demo.figure.DemoText;
import dev.vgpu.bench.demo.process.DemoBackend;
import dev.vgpu.bench.demo.process.Processes;
import dev.vgpu.bench.demo.process.ProcessesText;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Console;
import dev.vgpu.cli.console.Lines;
import dev.vgpu.cli.console.Progress;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.Machine;
import dev.vgpu.cli.machine.SourceCheckout;
import dev.vgpu.cli.machine.VersionText;
import dev.vgpu.cli.report.HtmlReport;
import dev.vgpu.cli.report.ReportFile;
import dev.vgpu.simulation.trace.Trace;
import dev.vgpu.simulation.trace.TraceFormatException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.temporal.ChronoUnit;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Runs the demo, prints its table, and writes its report. */
@Command(
    name = "demo",
    description = {
      "Share one device between online and offline inference, and compare.",
      "",
      "Starts the sample inference server, replays a trace of online requests alone, beside an"
          + " offline job without control, and beside it with vgpu; then two offline tenants at"
          + " 75/25, and six models in one JVM. Takes under two minutes.",
      "",
      "Then unmodified programs share an emulated GPU at 50 %% fixed, 30 %% burst and best effort,"
          + " and an online one preempts them; with --backend, as clients of MPS (a stand-in) or in"
          + " MIG instances of their own. Takes under half a minute."
    },
    footer = {
      "",
      "Exit codes: 0 done (a target may be missed; the table says so), 1 failed, 2 wrong usage,"
          + " 130 ended by Ctrl-C."
    })
public final class DemoCommand implements Callable<Integer> {
  private static final String SERVER_MODULE = "samples/inference-server";
  private static final String SERVER_ARTIFACT = "vgpu-sample-inference-server";
  private static final String PROGRAMS = "samples/cuda-programs/target/programs";
  private static final int FIRST = 1;
  private static final int SECOND = 2;
  private static final String REPORT_NAME = "vgpu-demo.html";

  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Mixin private final JsonOption json = new JsonOption();

  @Option(
      names = "--report",
      paramLabel = "FILE",
      description =
          "Where the HTML report goes. Default: target/vgpu-demo.html of the checkout, or"
              + " vgpu-demo.html here.")
  private @Nullable Path report;

  @Option(
      names = "--trace",
      paramLabel = "conv|code|FILE",
      description =
          "The online load: a conversation service (the default), a coding service with bursts, or"
              + " a file in the format of the Azure LLM inference traces.")
  private String trace = "conv";

  @Option(
      names = "--load",
      paramLabel = "PERCENT",
      description =
          "What the online requests use of the device when alone, 1 to 90; the trace is sped up or"
              + " slowed down to that. Default: ${DEFAULT-VALUE}.")
  private int load = 25;

  @Option(
      names = "--part",
      paramLabel = "1|2",
      description = "Only the inference server (1), or only the programs (2). Default: both.")
  private @Nullable Integer part;

  @Option(
      names = "--backend",
      paramLabel = "hook|mps|mig",
      description =
          "Only the programs (2), and by what they share the emulated GPU: turns, MPS, or MIG"
              + " instances, which only root may make. Default: hook.")
  private @Nullable DemoBackend backend;

  @Option(names = "--quick", description = "Half as long, with less sure figures.")
  private boolean quick;

  @Option(names = "--brief", hidden = true, description = "Some seconds, for tests of the demo.")
  private boolean brief;

  @Option(
      names = "--keep-logs",
      description = "Keep the logs and files of the processes, and say where.")
  private boolean keepLogs;

  @Option(names = "--server-class-path", hidden = true, description = "Another server.")
  private @Nullable String serverClassPath;

  @Option(names = "--server-class", hidden = true, description = "Another server's main class.")
  private String serverClass = "dev.vgpu.samples.inference.InferenceServer";

  @Option(names = "--programs", hidden = true, description = "Where the programs are.")
  private @Nullable Path programs;

  /** Creates the command. */
  public DemoCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException, IOException, InterruptedException {
    if (part != null && part != FIRST && part != SECOND) {
      throw new ParameterException(spec.commandLine(), "--part is not 1 or 2: " + part);
    }
    if (backend != null && part != null && part == FIRST) {
      throw new ParameterException(spec.commandLine(), "--backend is of part 2 only");
    }
    DemoOptions options = runs(FIRST) ? options() : null;
    Path programsPath = runs(SECOND) ? programsPath() : null;
    ReportFile file = ReportFile.prepare(reportPath());
    int steps =
        (options == null ? 0 : Demo.steps(length()))
            + (programsPath == null ? 0 : Processes.steps());
    Measured measured;
    try (Progress progress = new Progress(context.console(), context.clock(), steps)) {
      measured = measure(options, programsPath, progress);
    }
    write(measured, file);
    if (measured.secondFailed() != null) {
      throw measured.secondFailed();
    }
    return 0;
  }

  /** The measurements of the parts that ran. */
  private record Measured(
      @Nullable DemoResults first,
      @Nullable ObjectNode second,
      @Nullable UserException secondFailed) {}

  private boolean runs(int which) {
    if (part == null) {
      return backend == null || which == SECOND;
    }
    return part == which;
  }

  private Measured measure(
      @Nullable DemoOptions options, @Nullable Path programsPath, Progress progress)
      throws UserException, IOException, InterruptedException {
    Demo demo = options == null ? null : new Demo(options, context.clock(), progress);
    Processes processes =
        programsPath == null
            ? null
            : Processes.of(
                programsPath,
                backend == null ? DemoBackend.HOOK : backend,
                length(),
                logs(),
                progress);
    progress.say(
        "the demo takes about "
            + ((demo == null ? 0 : demo.expectedSeconds())
                + (processes == null ? 0 : Processes.expectedSeconds(length())))
            + " s");
    DemoResults first = demo == null ? null : demo.run();
    try {
      return new Measured(first, processes == null ? null : processes.run(), null);
    } catch (UserException e) {
      if (first == null) {
        throw e;
      }
      return new Measured(first, null, e); // Keeps what the first part measured.
    }
  }

  private void write(Measured measured, ReportFile file) throws UserException {
    DemoResults first = measured.first();
    ObjectNode second = measured.second();
    ObjectNode figures = first == null ? JsonNodeFactory.instance.objectNode() : DemoJson.of(first);
    if (second != null) {
      figures.set("processes", second);
    }
    describeRun(figures);
    file.write(HtmlReport.of(DemoCommand.class, "demo", DemoReport.of(first, figures)));
    Console console = context.console();
    if (json.isGiven()) {
      figures.put("report", file.path().toString());
      JsonOption.print(console, figures);
      return;
    }
    if (first != null) {
      console.out().println();
      print(new DemoText(first).lines(), console);
    }
    if (second != null) {
      console.out().println();
      print(new ProcessesText(second).lines(), console);
    }
    console.out().println();
    console.out().println("report: " + file.path());
  }

  /** Wraps sentences to the terminal's width; tables already fit 80 columns. */
  static void print(List<String> lines, Console console) {
    int width = console.textWidth();
    lines.stream()
        .flatMap(line -> Lines.fitting(line, width).stream())
        .forEach(console.out()::println);
  }

  private DemoOptions options() throws UserException {
    if (load < 1 || load > 90) {
      throw new ParameterException(spec.commandLine(), "--load is not within 1 to 90: " + load);
    }
    return new DemoOptions(
        loadTrace(),
        load,
        length(),
        serverClassPath == null ? sampleClassPath() : serverClassPath,
        serverClass,
        logs());
  }

  private DemoOptions.Logs logs() {
    return keepLogs ? DemoOptions.Logs.KEEP : DemoOptions.Logs.DELETE;
  }

  private Path programsPath() throws UserException {
    return programs != null
        ? programs
        : SourceCheckout.require(context.environment(), "demo").root().resolve(PROGRAMS);
  }

  private DemoOptions.Length length() {
    if (brief) {
      return DemoOptions.Length.BRIEF;
    }
    return quick ? DemoOptions.Length.QUICK : DemoOptions.Length.FULL;
  }

  private String sampleClassPath() throws UserException {
    return SourceCheckout.require(context.environment(), "demo")
        .classPath(SERVER_MODULE, SERVER_ARTIFACT);
  }

  private Trace loadTrace() throws UserException {
    return switch (trace.toLowerCase(Locale.ROOT)) {
      case "conv" -> Trace.Builtin.CONV.load();
      case "code" -> Trace.Builtin.CODE.load();
      default -> traceInFile(Path.of(trace));
    };
  }

  private static Trace traceInFile(Path file) throws UserException {
    if (Files.isDirectory(file)) {
      throw new UserException(file + " is a directory; give a file, or --trace conv or code");
    }
    try {
      return Trace.fromFile(file);
    } catch (TraceFormatException e) {
      throw new UserException(e.getMessage() + "; give a file, or --trace conv or code", e);
    }
  }

  private Path reportPath() {
    if (report != null) {
      return report;
    }
    return SourceCheckout.find(context.environment())
        .map(checkout -> checkout.root().resolve("target").resolve(REPORT_NAME))
        .orElse(Path.of(REPORT_NAME));
  }

  private void describeRun(ObjectNode figures) {
    figures.put("machine", Machine.current().description());
    figures.put("version", VersionText.version());
    figures.put("commit", VersionText.commit(context.environment()));
    figures.put("date", context.clock().wallTime().truncatedTo(ChronoUnit.SECONDS).toString());
  }
}
