package dev.vgpu.cli.run;

import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import dev.vgpu.GpuPool;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.text.Words;
import dev.vgpu.watch.GpuLease;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** Suspends or resumes a virtual GPU. */
public abstract class SuspendCommand implements Callable<Integer> {
  private final CliContext context;

  @Mixin private final JsonOption json = new JsonOption();

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Parameters(
      paramLabel = "NAME|ID",
      description = "Which one: its id, or its name if only one has that name; see vgpu ls.")
  private String which;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description = "How long it may take. Default: 1m.")
  private Duration timeout = Duration.ofMinutes(1);

  private SuspendCommand(CliContext context) {
    this.context = context;
  }

  /** Suspends what runs under a virtual GPU: its memory moves off the GPU, its work waits. */
  @Command(
      name = "suspend",
      description = {
        "Suspend what runs under a virtual GPU: its memory moves to the host's, its work waits.",
        "It keeps its share and quota, and goes on with 'vgpu resume'."
      },
      footer = {"", "Exit codes: 0 done, 1 it cannot be suspended, 2 wrong usage."})
  public static final class Suspend extends SuspendCommand {
    /** Creates the command. */
    public Suspend(CliContext context) {
      super(context);
    }

    @Override
    void change(GpuPool pool, String id, Duration within) {
      pool.suspend(id, within);
    }

    @Override
    String done() {
      return "suspended";
    }
  }

  /** Resumes what runs under a suspended virtual GPU. */
  @Command(
      name = "resume",
      description = "Resume a suspended virtual GPU.",
      footer = {"", "Exit codes: 0 done, 1 it cannot be resumed now, 2 wrong usage."})
  public static final class Resume extends SuspendCommand {
    /** Creates the command. */
    public Resume(CliContext context) {
      super(context);
    }

    @Override
    void change(GpuPool pool, String id, Duration within) {
      pool.resume(id, within);
    }

    @Override
    String done() {
      return "resumed";
    }
  }

  abstract void change(GpuPool pool, String id, Duration within);

  abstract String done();

  @Override
  public Integer call() throws UserException {
    try (GpuPool pool = context.pools().get()) {
      GpuLease lease = find(pool.leases());
      long startNs = context.clock().nowNs();
      change(pool, lease.id(), timeout);
      double seconds = (context.clock().nowNs() - startNs) / 1e9;
      if (json.isGiven()) {
        ObjectNode object = JsonNodeFactory.instance.objectNode();
        object
            .put("id", lease.id())
            .put("state", done())
            .put("bytes", lease.usage().memoryUsed().bytes())
            .put("seconds", seconds);
        JsonOption.print(context.console(), object);
      } else {
        context
            .console()
            .out()
            .println(
                String.format(
                    Locale.ROOT,
                    "%s %s, %s, after %.3f s",
                    lease.id(),
                    done(),
                    Words.size(lease.usage().memoryUsed()),
                    seconds));
      }
    }
    return 0;
  }

  private GpuLease find(List<GpuLease> leases) throws UserException {
    List<GpuLease> found = leases.stream().filter(lease -> lease.id().equals(which)).toList();
    if (found.isEmpty()) {
      found = leases.stream().filter(lease -> lease.request().name().equals(which)).toList();
    }
    if (found.size() != 1) {
      List<GpuLease> shown = found.isEmpty() ? leases : found;
      String ids = shown.stream().map(GpuLease::id).collect(Collectors.joining(" "));
      throw new UserException(
          (found.isEmpty() ? "no virtual GPU is called " : "several virtual GPUs are called ")
              + which
              + (ids.isEmpty() ? "; none is held" : "; there are: " + ids));
    }
    return found.get(0);
  }
}
