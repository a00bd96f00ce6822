package dev.vgpu.cli.run;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.backend.BackendChoice;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.JsonOption;
import dev.vgpu.cli.command.ShareOptions;
import dev.vgpu.cli.console.ExitCodes;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.machine.RunDirectory;
import dev.vgpu.cli.process.ProgramFile;
import dev.vgpu.cli.process.SignalForwarder;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.FailureMode;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemoryMobility;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** Runs a program under a virtual GPU. */
@Command(
    name = "run",
    description = {
      "Run a program, unmodified, under a virtual GPU.",
      "",
      "Its memory on the GPU stays within the quota, and its work takes turns with that of others."
          + " The same applies to its child processes. SIGINT, SIGTERM and SIGHUP go to the"
          + " program."
    },
    footer = {
      "",
      "It ends with the program. Processes left in the background keep the virtual GPU until the"
          + " last one ends. vgpu waits for them only if no other process holds the node's seat"
          + " ('vgpu serve'), and says so; a signal ends the wait. If vgpu itself is killed, the"
          + " program goes on within its quota and share.",
      "",
      "Exit codes: the program's own; 128 + n if signal n ended it; 2 wrong usage, also a quota"
          + " that no GPU here could ever give; 69 no backend can enforce it here; 75 it does not"
          + " fit now; 126 the program cannot be started, or not under a virtual GPU; 127 it was"
          + " not found."
    })
public final class RunCommand implements Callable<Integer> {
  private static final int LONGEST_NAME = 63;

  private final CliContext context;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Option(
      names = "--gpu",
      paramLabel = "ID",
      description =
          "The GPU, or one of them: its UUID, or its place in 'vgpu devices', from 0. Default:"
              + " any.")
  private @Nullable String gpu;

  @Option(
      names = "--gpus",
      paramLabel = "N",
      description =
          "How many GPUs, all or none: the quota and the share are granted on each, and its turns"
              + " are on all together. Default: 1.")
  private int gpus = 1;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Option(
      names = "--memory",
      required = true,
      paramLabel = "SIZE",
      description =
          "The memory quota, for example 4GiB; with --gpus N on each, held as N times that in all.")
  private MemorySize memory;

  @Mixin private final ShareOptions share = new ShareOptions();

  @Option(
      names = "--name",
      paramLabel = "NAME",
      description = "The tenant's name in tables. Default: the program's.")
  private @Nullable String name;

  @Option(
      names = "--on-failure",
      paramLabel = "refuse|open",
      description =
          "What happens where quota and share cannot be enforced: refuse to run the program (the"
              + " default), or run it without.")
  private FailureMode onFailure = FailureMode.REFUSE;

  @Option(
      names = "--movable",
      description =
          "Lets the hook move the program's memory to the host's, allocation by allocation, while"
              + " it is suspended. For offline programs on one GPU.")
  private boolean movable;

  @Mixin private final RequiredOptions required = new RequiredOptions();

  @Option(
      names = "--backend",
      paramLabel = "NAME",
      description =
          "The only way to share the GPU that may serve it, as 'vgpu doctor' names it, even without"
              + " turns. kmod: the kernel module, which also reaches static programs. Default: the"
              + " cheapest that keeps quota and share.")
  private @Nullable String backend;

  @Option(
      names = "--part",
      paramLabel = "PROFILE[:START]",
      description =
          "A MIG instance of this profile, alone in it, as 'vgpu mig list' names it, for example"
              + " 3g.40gb; with a start, at that memory slice. The quota may not exceed its memory.")
  private @Nullable String part;

  @Option(
      names = "--explain",
      description =
          "Do not run it: say for each GPU and each way to share it whether it would be chosen, or"
              + " why not. Exit code 0 if something would serve it now, else as without.")
  private boolean explain;

  @Option(
      names = "--json",
      description = "With --explain: print one JSON object on standard output.")
  private boolean json;

  @Option(
      names = "--wait",
      paramLabel = "DURATION",
      description = "How long to wait until it fits, for example 30s. Default: not at all.")
  private Duration wait = Duration.ZERO;

  @Parameters(arity = "0..*", paramLabel = "COMMAND", description = "The program, its arguments.")
  private @Nullable List<String> command;

  /** Creates the command. */
  public RunCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException, IOException, InterruptedException {
    if (explain) {
      return explain();
    }
    if (json) {
      throw new ParameterException(
          spec.commandLine(), "--json belongs to --explain: the program writes the output here");
    }
    if (command == null || command.isEmpty()) {
      throw new ParameterException(spec.commandLine(), "Missing required parameter: 'COMMAND'");
    }
    Path program = ProgramFile.find(command.get(0), context.environment().get("PATH"));
    VirtualGpuRequest.Builder request = request(program);
    try (GpuPool pool = open()) {
      SignalForwarder signals;
      String id;
      int exitCode;
      try (VirtualGpu virtualGpu = acquire(pool, request)) {
        id = virtualGpu.id();
        ReclaimNotices notices = new ReclaimNotices(id, context.console());
        GpuPool.Listening ignored = pool.listen(notices);
        signals = SignalForwarder.install();
        Process process = start(virtualGpu, command);
        signals.forwardTo(process);
        exitCode = notices.lastWords(process.waitFor());
      }
      new SeatStay(pool, RunDirectory.of(context.environment()), context.console())
          .whileNeeded(id, signals);
      return exitCode;
    }
  }

  private int explain() throws UserException {
    Path program = Path.of(command == null || command.isEmpty() ? "program" : command.get(0));
    VirtualGpuRequest.Builder request = request(program);
    try (GpuPool pool = open()) {
      if (gpu != null) {
        request.gpu(gpuId(pool, gpu));
      }
      List<BackendChoice> choices = pool.explain(request.build());
      checkBackend(choices);
      if (choices.isEmpty()) {
        throw new UserException("no such GPU: vgpu devices lists them", null, ExitCodes.USAGE);
      }
      if (json) {
        JsonOption.print(context.console(), Explanation.json(choices));
      } else {
        Explanation.print(choices, context.console());
      }
      return exitCode(choices, pool.gpus(), request.build());
    }
  }

  /** The exit code of running it. */
  private static int exitCode(
      List<BackendChoice> choices, List<PhysicalGpu> gpus, VirtualGpuRequest request) {
    if (Explanation.isServed(choices)) {
      return ExitCodes.DONE;
    }
    Set<GpuId> asked = choices.stream().map(BackendChoice::gpu).collect(Collectors.toSet());
    long largeEnough =
        gpus.stream()
            .filter(each -> asked.contains(each.id()))
            .filter(each -> each.usableMemory().compareTo(request.memory()) >= 0)
            .count();
    if (largeEnough < request.gpuCount()) {
      return ExitCodes.USAGE;
    }
    return choices.stream().allMatch(each -> each.verdict() == BackendChoice.Verdict.IMPOSSIBLE)
        ? ExitCodes.UNAVAILABLE
        : ExitCodes.NO_CAPACITY;
  }

  /** A name that no backend has is a mistake, not a lack of this machine. */
  private void checkBackend(List<BackendChoice> choices) {
    List<String> names = choices.stream().map(BackendChoice::backend).distinct().toList();
    if (backend != null && !names.isEmpty() && !names.contains(backend)) {
      throw new ParameterException(
          spec.commandLine(),
          "no such backend: " + backend + " (one of " + String.join(", ", names) + ")");
    }
  }

  private VirtualGpuRequest.Builder request(Path program) {
    if (gpus < 1 || gpus > VirtualGpuRequest.MAX_GPU_COUNT) {
      throw new ParameterException(
          spec.commandLine(),
          "--gpus is not within 1 to " + VirtualGpuRequest.MAX_GPU_COUNT + ": " + gpus);
    }
    try {
      VirtualGpuRequest.Builder builder =
          VirtualGpuRequest.builder()
              .name(name == null ? nameOf(program) : name)
              .memory(memory)
              .failureMode(onFailure)
              .memoryMobility(movable ? MemoryMobility.MOVABLE : MemoryMobility.FIXED)
              .gpuCount(gpus)
              .require(Capabilities.Memory.EXACT)
              .require(Capabilities.Scope.PROCESS);
      if (part != null) {
        builder.part(part);
      }
      if (backend != null) {
        builder.backend(backend);
      } else if (part == null) {
        builder.require(Capabilities.Compute.TURNS);
      }
      share.addTo(builder);
      required.addTo(builder);
      builder.build();
      return builder;
    } catch (IllegalArgumentException | TypeConversionException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  /** Replaces each character that a tenant's name may not contain by a dash. */
  static String nameOf(Path program) {
    Path file = program.getFileName();
    String text = (file == null ? "program" : file.toString()).replaceAll("[^A-Za-z0-9._-]", "-");
    String named = Character.isLetterOrDigit(text.charAt(0)) ? text : "program" + text;
    return named.substring(0, Math.min(named.length(), LONGEST_NAME));
  }

  private GpuPool open() throws UserException {
    try {
      return context.pools().get();
    } catch (VgpuException | IllegalStateException e) {
      throw refused(e, ExitCodes.UNAVAILABLE);
    }
  }

  private VirtualGpu acquire(GpuPool pool, VirtualGpuRequest.Builder request)
      throws UserException, InterruptedException {
    if (gpu != null) {
      request.gpu(gpuId(pool, gpu));
    }
    try {
      if (backend != null) {
        checkBackend(pool.explain(request.build()));
      }
      if (wait.isZero()) {
        return pool.acquire(request.build());
      }
      return pool.tryAcquire(request.build(), wait)
          .orElseThrow(
              () ->
                  new UserException(
                      "it did not fit within " + wait.toMillis() + " ms: " + request.build(),
                      null,
                      ExitCodes.NO_CAPACITY));
    } catch (GpuCapacityException e) {
      throw refused(e, ExitCodes.NO_CAPACITY);
    } catch (IllegalArgumentException e) {
      throw refused(e, ExitCodes.USAGE);
    } catch (VgpuException | IllegalStateException e) {
      throw refused(e, ExitCodes.UNAVAILABLE);
    }
  }

  private static GpuId gpuId(GpuPool pool, String text) {
    List<PhysicalGpu> gpus = pool.gpus();
    for (int i = 0; i < gpus.size(); i++) {
      if (text.equals(Integer.toString(i))) {
        return gpus.get(i).id();
      }
    }
    return new GpuId(text);
  }

  private static Process start(VirtualGpu virtualGpu, List<String> command) throws UserException {
    try {
      return virtualGpu.start(new ProcessBuilder(command).inheritIO());
    } catch (IOException | VgpuException e) {
      throw refused(e, ExitCodes.NOT_EXECUTABLE);
    }
  }

  private static UserException refused(Exception e, int exitCode) {
    String message = e.getMessage();
    return new UserException(message == null ? e.toString() : message, e, exitCode);
  }
}
