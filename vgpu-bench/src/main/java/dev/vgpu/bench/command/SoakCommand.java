package dev.vgpu.bench.command;

import dev.vgpu.cli.command.JsonOption;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** Runs the soak test as a process. */
@Command(
    name = "soak",
    description = {
      "Keep eight emulated GPUs busy for hours, and see that nothing grows and nothing drifts.",
      "",
      "Tenants of every policy and class come and go, are killed, stopped and paused; the seat's"
          + " holder is killed and another process takes over; the disk fills up. Measured all the"
          + " while: heap, memory, threads, descriptors, shared pages, files, disk, shares, and the"
          + " ledgers beside the GPUs' own accounts. The run ends if a tenant makes no progress."
    },
    footer = {
      "",
      "DIR gets soak.txt, soak.json, soak.svg, and soak.jsonl with all that was measured; with"
          + " --append a run goes on where the last one ended. Ctrl-C ends it with the report of"
          + " what was seen. Full disks need a mount namespace (root, or user namespaces).",
      "Exit codes: 0 all held, 1 something did not, 2 wrong usage, 130 ended by Ctrl-C."
    })
public final class SoakCommand implements Callable<Integer> {
  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Option(names = "--hours", paramLabel = "N", description = "How long. Default: 8.")
  private double hours = 8;

  @Option(names = "--tenants", paramLabel = "N", description = "How many at once. Default: 64.")
  private int tenants = 64;

  @Option(
      names = "--seed",
      paramLabel = "S",
      description = "What befalls the tenants is drawn from it. Default: a new one each time.")
  private @Nullable Long seed;

  @Option(names = "--out", paramLabel = "DIR", description = "For the results. Default: vgpu-soak.")
  private Path out = Path.of("vgpu-soak");

  @Option(names = "--append", description = "Go on where the results in DIR end.")
  private boolean append;

  @Mixin private final JsonOption json = new JsonOption();

  @Override
  public Integer call() throws IOException, InterruptedException {
    if (!(hours > 0) || tenants < 1) {
      throw new ParameterException(
          spec.commandLine(), "--hours must be more than 0, --tenants at least 1");
    }
    List<String> options =
        new ArrayList<>(
            List.of(
                "--hours", Double.toString(hours),
                "--tenants", Integer.toString(tenants),
                "--out", out.toString()));
    if (seed != null) {
      options.addAll(List.of("--seed", Long.toString(seed)));
    }
    if (append) {
      options.add("--append");
    }
    if (json.isGiven()) {
      options.add("--json");
    }
    return BenchProcess.runApart("soak", options);
  }
}
