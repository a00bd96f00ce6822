package dev.vgpu.cli.fleet;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.Progress;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.VersionText;
import dev.vgpu.cli.report.LineChart;
import dev.vgpu.cli.report.ReportFile;
import dev.vgpu.fleet.placement.Policies;
import dev.vgpu.fleet.simulation.FleetFile;
import dev.vgpu.fleet.simulation.OpenbTrace;
import dev.vgpu.fleet.simulation.Replay;
import dev.vgpu.fleet.simulation.ReplayResult;
import dev.vgpu.fleet.simulation.Trace;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Shows what placement policies would do to a cluster. */
@Command(
    name = "fleet",
    description = "Simulate the placement of requests on a cluster.",
    synopsisSubcommandLabel = "COMMAND",
    footer = {"", "Exit codes: 0 done, 1 failed, 2 wrong usage."})
public final class FleetCommand implements Runnable {
  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  private FleetCommand() {}

  /** {@return the command with its subcommands} */
  public static CommandLine commandLine(CliContext context) {
    return new CommandLine(new FleetCommand()).addSubcommand(new Simulate(context));
  }

  /** Fails: a subcommand is required. */
  @Override
  public void run() {
    throw new ParameterException(spec.commandLine(), "no command is given");
  }

  /** Replays a trace under several policies. */
  @Command(
      name = "simulate",
      description = {
        "Play a trace of jobs on a cluster, in virtual time, with several placement policies.",
        "",
        "FILE has a line for each node and job; vgpu-fleet/README.md describes it. For 'openb',"
            + " --data names the directory with the files of cluster-trace-gpu-v2023 of"
            + " https://github.com/alibaba/clusterdata."
      },
      footer = {"", "Exit codes: 0 done, 1 failed, 2 wrong usage."})
  static final class Simulate implements Callable<Integer> {
    private static final String OPENB = "openb";
    private static final double HOUR = 3600;

    private final CliContext context;

    @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
    @Spec
    private CommandSpec spec;

    @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
    @Parameters(paramLabel = "FILE|openb", description = "What is played.")
    private String what;

    @Option(names = "--data", paramLabel = "DIRECTORY", description = "Where openb's files are.")
    private @Nullable Path data;

    @Option(
        names = "--list",
        paramLabel = "NAME",
        description = "Which of openb's pod lists. Default: ${DEFAULT-VALUE}.")
    private String list = "default";

    @Option(
        names = "--policies",
        split = ",",
        paramLabel = "NAME",
        description = "Of random, spread, binpack, best-fit, fgd, vgpu. Default: all.")
    private List<String> policies = Policies.names();

    @Mixin private final JsonOption json = new JsonOption();

    @Option(names = "--plot", paramLabel = "FILE.svg", description = "Draw allocation over time.")
    private @Nullable Path plot;

    Simulate(CliContext context) {
      this.context = context;
    }

    @Override
    public Integer call() throws UserException {
      for (String policy : policies) {
        if (!Policies.names().contains(policy)) {
          throw new ParameterException(
              spec.commandLine(), "no such policy: " + policy + "; there are " + Policies.names());
        }
      }
      Trace trace = trace();
      ReportFile drawing = plot == null ? null : ReportFile.prepare(plot);
      Replay replay = new Replay(trace, () -> context.clock().nowNs());
      List<ReplayResult> results = new ArrayList<>();
      try (Progress progress = new Progress(context.console(), context.clock(), policies.size())) {
        for (String policy : policies) {
          progress.begin("place the jobs with policy " + policy);
          results.add(replay.run(policy));
        }
      }
      if (drawing != null) {
        drawing.write(chart(trace, results).svg());
      }
      if (json.isGiven()) {
        JsonOption.print(context.console(), figures(trace, results));
      } else {
        FleetText.lines(trace, results).forEach(context.console().out()::println);
      }
      return 0;
    }

    private Trace trace() throws UserException {
      try {
        if (!what.equals(OPENB)) {
          return FleetFile.read(Path.of(what));
        }
        if (data == null) {
          throw new ParameterException(
              spec.commandLine(), "openb is not part of vgpu: --data names its directory");
        }
        return OpenbTrace.read(data, list);
      } catch (IOException e) {
        String file = what.equals(OPENB) ? "openb's files in " + data : what;
        throw new UserException(
            "cannot read the trace " + file + ": " + UserException.reason(e), e);
      } catch (IllegalArgumentException e) {
        throw new UserException(String.valueOf(e.getMessage()), e);
      }
    }

    private static LineChart chart(Trace trace, List<ReplayResult> results) {
      double hours = 0;
      for (ReplayResult result : results) {
        for (ReplayResult.Point point : result.points()) {
          hours = Math.max(hours, point.timeS() / HOUR);
        }
      }
      LineChart chart = new LineChart("GPU time allocated: " + trace.name(), hours);
      for (ReplayResult result : results) {
        List<ReplayResult.Point> points = result.points();
        chart.line(
            result.policy(),
            points.stream().mapToDouble(point -> point.timeS() / HOUR).toArray(),
            points.stream().mapToDouble(ReplayResult.Point::allocatedPercent).toArray());
      }
      return chart;
    }

    private ObjectNode figures(Trace trace, List<ReplayResult> results) {
      ObjectNode all = JsonNodeFactory.instance.objectNode();
      all.put("trace", trace.name());
      all.put("nodes", trace.nodes().size());
      all.put("jobs", trace.jobs().size());
      ArrayNode array = all.putArray("policies");
      results.forEach(result -> array.add(FleetText.figures(result)));
      all.put("version", VersionText.version());
      all.put("commit", VersionText.commit(context.environment()));
      return all;
    }
  }
}
