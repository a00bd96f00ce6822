package dev.vgpu.bench.command;

import dev.vgpu.bench.chaos.soak.SoakOptions;
import java.io.IOException;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
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

  @Mixin final SoakOptions options = new SoakOptions();

  @Override
  public Integer call() throws IOException, InterruptedException {
    return BenchProcess.runApart("soak", spec);
  }
}
