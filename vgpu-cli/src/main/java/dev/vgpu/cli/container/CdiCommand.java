package dev.vgpu.cli.container;

import static java.util.Objects.requireNonNull;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import dev.vgpu.GpuCapacityException;
import dev.vgpu.GpuPool;
import dev.vgpu.VgpuException;
import dev.vgpu.VirtualGpu;
import dev.vgpu.cli.command.CliContext;
import dev.vgpu.cli.command.ShareOptions;
import dev.vgpu.cli.console.ExitCodes;
import dev.vgpu.cli.console.UserException;
import dev.vgpu.cli.process.EndSignal;
import dev.vgpu.cli.process.SignalForwarder;
import dev.vgpu.files.TrustedFiles;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Describes a virtual GPU to container runtimes. */
@Command(
    name = "cdi",
    description = {
      "Take a virtual GPU and describe it to container runtimes, as a device of the Container"
          + " Device Interface.",
      "",
      "Without a command it stays until SIGINT, SIGTERM or SIGHUP, then removes the file and gives"
          + " the virtual GPU back. With one it does so when that has ended; the command gets these"
          + " signals, and finds the device's name in VGPU_CDI_DEVICE."
    },
    footer = {
      "",
      "For example: vgpu cdi --memory 4GiB --output /etc/cdi/vgpu.json -- sh -c 'podman run"
          + " --device $VGPU_CDI_DEVICE IMAGE'",
      "",
      "Exit codes: the command's own; 0 ended by a signal, or the file is right (--check); 1 it is"
          + " not, or cannot be written; 2 wrong usage; 69 no backend can enforce it here; 75 it"
          + " does not fit now."
    })
public final class CdiCommand implements Callable<Integer> {
  private static final String DEVICE_VARIABLE = "VGPU_CDI_DEVICE";
  private static final String EXAMPLE = "vgpu.json";
  private static final int MOST_BYTES = 1 << 20;

  private final CliContext context;
  private final CountDownLatch end = new CountDownLatch(1);
  private @Nullable SignalForwarder signals;

  @SuppressWarnings("NullAway.Init") // picocli sets it before the call.
  @Spec
  private CommandSpec spec;

  @Option(
      names = "--check",
      paramLabel = "FILE",
      description = "Only check a file, and say what is wrong with it.")
  private @Nullable Path checked;

  @Option(
      names = "--output",
      paramLabel = "FILE",
      description = "The file to write, for example /etc/cdi/vgpu.json. Default: standard output.")
  private @Nullable Path output;

  @Option(
      names = "--memory",
      paramLabel = "SIZE",
      description = "The memory quota, for example 4GiB.")
  private @Nullable MemorySize memory;

  @Mixin private final ShareOptions share = new ShareOptions();

  @Option(
      names = "--name",
      paramLabel = "NAME",
      description = "The tenant's name, and the beginning of the device's. Default: container.")
  private String name = "container";

  @Parameters(
      arity = "0..*",
      paramLabel = "COMMAND",
      description = "What to run while the device is there.")
  private List<String> command = List.of();

  /** Creates the command. */
  public CdiCommand(CliContext context) {
    this.context = context;
  }

  @Override
  public Integer call() throws UserException, IOException, InterruptedException {
    if (checked != null) {
      return check(checked);
    }
    VirtualGpuRequest request = request();
    if (command.isEmpty()) {
      for (EndSignal signal : EndSignal.values()) {
        signal.handle(end::countDown);
      }
    } else {
      signals = SignalForwarder.install(); // the device goes when the command has ended
    }
    try (GpuPool pool = context.pools().get();
        VirtualGpu gpu = pool.acquire(request)) {
      CdiFile file = CdiFile.of(gpu.id(), gpu.containerSpec());
      List<String> problems = CdiRules.problems(file.content());
      if (!problems.isEmpty()) {
        throw new UserException("the file would be wrong: " + problems, null, 1);
      }
      return serve(file);
    } catch (GpuCapacityException e) {
      throw new UserException(String.valueOf(e.getMessage()), e, ExitCodes.NO_CAPACITY);
    } catch (VgpuException | IllegalStateException e) {
      throw new UserException(String.valueOf(e.getMessage()), e, ExitCodes.UNAVAILABLE);
    }
  }

  private int check(Path file) throws UserException {
    List<String> problems;
    try {
      problems =
          CdiRules.problems(new ObjectMapper().readTree(TrustedFiles.readAtMost(file, MOST_BYTES)));
    } catch (JsonProcessingException e) {
      throw new UserException(file + " is not JSON: " + e.getOriginalMessage(), e);
    } catch (IOException e) {
      throw new UserException("cannot read " + file + ": " + UserException.reason(e), e);
    }
    problems.forEach(problem -> context.console().err().println("vgpu: " + problem));
    return problems.isEmpty() ? 0 : 1;
  }

  private VirtualGpuRequest request() {
    if (memory == null) {
      throw new ParameterException(spec.commandLine(), "--memory or --check is needed");
    }
    try {
      VirtualGpuRequest.Builder builder =
          VirtualGpuRequest.builder()
              .name(name)
              .memory(memory)
              .requires(
                  Capabilities.builder()
                      .memory(Capabilities.Memory.EXACT)
                      .worksFor(Capabilities.Scope.CONTAINER)
                      .build());
      return share.addTo(builder).build();
    } catch (IllegalArgumentException e) {
      throw new ParameterException(spec.commandLine(), e.getMessage(), e);
    }
  }

  /** The device exists as long as this method runs. */
  private int serve(CdiFile file) throws UserException, IOException, InterruptedException {
    Path target = output;
    if (target == null) {
      context.console().out().print(file.text());
      context.console().out().flush();
      return await(file);
    }
    PublishedFile published = publish(target, file);
    try (published) {
      return await(file);
    }
  }

  private static PublishedFile publish(Path target, CdiFile file) throws UserException {
    if (Files.isDirectory(target)) {
      throw new UserException(
          target + " is a directory: name a file in it, for example " + target.resolve(EXAMPLE));
    }
    try {
      return PublishedFile.write(target, file.text());
    } catch (IOException e) {
      throw new UserException(
          "cannot write " + target + ": " + UserException.reason(e) + "; name another --output", e);
    }
  }

  private int await(CdiFile file) throws IOException, InterruptedException {
    context.console().err().println("vgpu: the device is " + file.device());
    if (command.isEmpty()) {
      end.await();
      return 0;
    }
    ProcessBuilder builder = new ProcessBuilder(command).inheritIO();
    builder.environment().put(DEVICE_VARIABLE, file.device());
    Process process = builder.start();
    requireNonNull(signals).forwardTo(process);
    return process.waitFor();
  }
}
