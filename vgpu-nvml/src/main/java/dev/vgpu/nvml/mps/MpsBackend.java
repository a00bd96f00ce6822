package dev.vgpu.nvml.mps;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.GpuDriver;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.watch.GpuReading;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;

/**
 * Virtual GPUs as MPS clients: their programs run on the GPU concurrently, each on a part of its
 * SMs. The backend starts and supervises one control daemon per GPU, in the run directory. All
 * clients form one fault domain: a program's fault may end the other programs on that GPU.
 */
public final class MpsBackend implements EnforcementBackend {
  private static final String NAME = "mps";
  private static final int COST = 200;
  private static final Path USUAL = Path.of("/tmp/nvidia-mps");
  private static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .compute(Capabilities.Compute.SPATIAL)
          .worksFor(Capabilities.Scope.PROCESS)
          .build();

  private final Map<String, String> environment;
  private final Iterable<GpuDriver> drivers;
  private final Path usual;
  private final Supplier<List<GpuReading>> readings;

  /** Called by {@code ServiceLoader}. */
  public MpsBackend() {
    this(System.getenv(), NvmlProvider.installedDrivers(), USUAL, new NvmlProvider()::readings);
  }

  MpsBackend(
      Map<String, String> environment,
      Iterable<GpuDriver> drivers,
      Path usual,
      Supplier<List<GpuReading>> readings) {
    this.readings = readings;
    this.environment = Map.copyOf(environment);
    this.drivers = drivers;
    this.usual = usual;
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int cost() {
    return COST;
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public BackendStatus status() {
    boolean found = MpsTool.find(environment).isPresent();
    for (GpuDriver driver : drivers) {
      found |= brings(driver);
    }
    return found
        ? BackendStatus.ofAvailable(NAME, CAPABILITIES)
        : BackendStatus.ofUnavailable(NAME, missing());
  }

  private static boolean brings(GpuDriver driver) {
    try {
      return driver.mpsControl().isPresent();
    } catch (VgpuException e) {
      return false;
    }
  }

  private static String missing() {
    return "there is no nvidia-cuda-mps-control in PATH: install the driver's compute utilities, or"
        + " set VGPU_MPS_CONTROL";
  }

  /** {@return the tool that belongs to a GPU's driver} */
  private Optional<Path> tool(PhysicalGpu gpu) {
    for (GpuDriver driver : drivers) {
      if (driver.name().equals(gpu.provider())) {
        return driver.mpsControl();
      }
    }
    return MpsTool.find(environment);
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    String id = gpu.id().value();
    return id.startsWith("GPU-") || id.startsWith("MIG-");
  }

  @Override
  public Optional<String> obstacle(PhysicalGpu gpu) {
    if (gpu.unusableAsWhole().isPresent()) {
      return gpu.unusableAsWhole();
    }
    try {
      Optional<Path> tool = tool(gpu);
      if (tool.isEmpty()) {
        return Optional.of(missing());
      }
      if (!Files.isExecutable(tool.get())) {
        return Optional.of(tool.get() + " cannot be executed; see VGPU_MPS_CONTROL");
      }
      Optional<String> mode = MpsTerms.obstacle(properties(gpu.id()));
      return mode.isPresent() ? mode : anothersDaemon();
    } catch (VgpuException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  /** {@return the driver's properties of a GPU; empty if it reports none} */
  private Map<String, String> properties(GpuId gpu) {
    return readings.get().stream()
        .filter(reading -> reading.gpu().equals(gpu))
        .findFirst()
        .map(GpuReading::properties)
        .orElse(Map.of());
  }

  /** A daemon in the usual place serves one user, and a GPU serves one daemon at a time. */
  private Optional<String> anothersDaemon() {
    Path control = usual.resolve("control");
    try {
      if (!Files.exists(control, LinkOption.NOFOLLOW_LINKS)) {
        return Optional.empty();
      }
      Object owner = Files.getAttribute(control, "unix:uid", LinkOption.NOFOLLOW_LINKS);
      Object self = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
      return owner.equals(self)
          ? Optional.empty()
          : Optional.of(
              "another user already runs MPS: path="
                  + control
                  + " uid="
                  + owner
                  + "; let that user hold the seat, or have it stopped (echo quit |"
                  + " nvidia-cuda-mps-control)");
    } catch (IOException | UnsupportedOperationException e) {
      return Optional.empty();
    }
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return MpsTerms.unable(request);
  }

  @Override
  public Optional<Capabilities> needs() {
    return Optional.of(
        Capabilities.builder()
            .memory(Capabilities.Memory.EXACT)
            // Turns are enforced inside a program. The kernel sees only the daemon's allocations.
            .compute(Capabilities.Compute.TURNS)
            .worksFor(Capabilities.Scope.PROCESS)
            .build());
  }

  @Override
  public Enforcement open(Path runDirectory) {
    throw new VgpuException("MPS needs a backend beneath it that keeps quotas exactly");
  }

  @Override
  public Enforcement open(Path runDirectory, Enforcement beneath) {
    return new MpsEnforcement(runDirectory, beneath, new ThisMachine());
  }

  /** The machine as this process sees it. */
  private final class ThisMachine implements MpsEnforcement.Machine {
    @Override
    public MpsTool tool(PhysicalGpu gpu) {
      return new MpsTool(MpsBackend.this.tool(gpu).orElseThrow(() -> new VgpuException(missing())));
    }

    @Override
    public MpsTool anyTool() {
      Optional<Path> found = MpsTool.find(environment);
      for (GpuDriver driver : drivers) {
        found = found.isPresent() ? found : driver.mpsControl();
      }
      return new MpsTool(found.orElseThrow(() -> new VgpuException(missing())));
    }

    @Override
    public int mostClients(GpuId gpu) {
      return MpsTerms.mostClients(properties(gpu));
    }
  }

  @Override
  public boolean hasLeftovers(Path runDirectory) {
    // Called whenever a pool is opened: if there is nothing, find that out without loading classes.
    return Files.isDirectory(runDirectory.resolve(MpsEnforcement.DIRECTORY))
        && !MpsDaemon.directories(MpsEnforcement.directory(runDirectory)).isEmpty();
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    throw new VgpuException(
        "a JVM that runs cannot become a client of MPS: start it under the virtual GPU instead");
  }
}
