package dev.vgpu.nvml.mig;

import dev.vgpu.ContainerSpec;
import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.nvml.mig.plan.MigGeometry;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.GpuPart;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Virtual GPUs that are MIG instances, created when a lease is granted and destroyed when it ends.
 * Instances come in fixed sizes, so the backend beneath enforces the quota inside one. That backend
 * alone makes memory exact.
 *
 * <p>A fixed share gets no more compute slices of its instance than it needs. If there is no legal
 * place for another instance, a request gets a compute instance in one of our instances that has
 * slices and memory left. Leases in one instance share its memory, its bandwidth, and its fault
 * domain. A request that requires fault isolation gets an instance alone.
 */
public final class MigBackend implements EnforcementBackend {
  private static final Logger log = LoggerFactory.getLogger(MigBackend.class);
  private static final int COST = 300;
  private static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .compute(Capabilities.Compute.SPATIAL)
          .faultIsolation(Capabilities.FaultIsolation.ISOLATED)
          .worksFor(
              Capabilities.Scope.PROCESS,
              Capabilities.Scope.CONTAINER,
              Capabilities.Scope.OTHER_USERS)
          .build();
  private static final Capabilities NEEDS =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .worksFor(Capabilities.Scope.PROCESS)
          .build();

  private final NvmlProvider provider;
  private final Map<GpuId, MigGeometry> geometries = new ConcurrentHashMap<>();

  /** Called by {@code ServiceLoader}. */
  public MigBackend() {
    this(new NvmlProvider());
  }

  MigBackend(NvmlProvider provider) {
    this.provider = provider;
  }

  @Override
  public String name() {
    return "mig";
  }

  @Override
  public BackendStatus status() {
    Optional<String> missing = provider.missing();
    if (missing.isPresent()) {
      return BackendStatus.ofUnavailable(name(), missing.get());
    }
    return isRoot()
        ? BackendStatus.ofAvailable(name(), CAPABILITIES)
        : BackendStatus.ofUnavailable(
            name(), "only root may make MIG instances: run the seat's holder (vgpu serve) as root");
  }

  private static boolean isRoot() {
    try {
      return Integer.valueOf(0).equals(Files.getAttribute(Path.of("/proc/self"), "unix:uid"));
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    return gpu.id().value().startsWith("GPU-");
  }

  @Override
  public int cost() {
    return COST;
  }

  @Override
  public Optional<String> obstacle(PhysicalGpu gpu) {
    return gpu.unusableAsWhole().isPresent()
        ? Optional.empty()
        : Optional.of(
            "MIG mode is off or not supported (see vgpu mig list); to enable it, with no program on"
                + " the GPU: vgpu mig enable "
                + gpu.id());
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    try {
      MigGeometry geometry = geometries.computeIfAbsent(gpu.id(), this::geometry);
      return MigParts.unable(geometry, request);
    } catch (VgpuException e) {
      return Optional.of(String.valueOf(e.getMessage()));
    }
  }

  @Override
  public List<GpuPart> parts(PhysicalGpu gpu) {
    return gpu.unusableAsWhole().isPresent()
        ? MigParts.of(geometries.computeIfAbsent(gpu.id(), this::geometry))
        : List.of();
  }

  private MigGeometry geometry(GpuId gpu) {
    try (MigDriver driver = MigDriver.of(provider)) {
      return driver
          .gpu(gpu)
          .geometry()
          .orElseThrow(() -> new VgpuException("it cannot be cut into MIG instances"));
    }
  }

  @Override
  public boolean preparesWhenGranted() {
    return true;
  }

  @Override
  public Optional<Capabilities> needs() {
    return Optional.of(NEEDS);
  }

  @Override
  public Enforcement open(Path runDirectory) {
    throw new VgpuException("MIG instances need a backend that keeps the quota inside them");
  }

  @Override
  public Enforcement open(Path runDirectory, Enforcement beneath) {
    return new MigEnforcement(runDirectory.toAbsolutePath(), beneath, () -> MigDriver.of(provider));
  }

  /** Includes devices of leases that are gone, which are about to be destroyed. */
  @Override
  public Set<GpuId> partsSetAside(Path runDirectory) {
    Set<GpuId> parts = new HashSet<>();
    try {
      for (MigRecord record : MigRecord.all(MigEnforcement.directory(runDirectory)).values()) {
        record.device().ifPresent(parts::add);
      }
    } catch (IOException e) {
      log.warn("the records of MIG instances cannot be read: directory={}", runDirectory, e);
    }
    return parts;
  }

  /** The backend beneath adds the files, and the device nodes by {@code VGPU_MIG}. */
  @Override
  public ContainerSpec containerSpec(Map<String, String> environment) {
    ContainerSpec.Builder spec = ContainerSpec.builder();
    String visible = environment.get("CUDA_VISIBLE_DEVICES");
    if (visible != null) {
      spec.variable("CUDA_VISIBLE_DEVICES", visible);
      spec.variable("NVIDIA_VISIBLE_DEVICES", "void");
    }
    return spec.build();
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    throw new VgpuException(
        "a JVM cannot move into a MIG instance: which GPU it sees is settled when it starts");
  }
}
