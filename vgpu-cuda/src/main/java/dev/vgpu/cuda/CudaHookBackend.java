package dev.vgpu.cuda;

import dev.vgpu.ContainerSpec;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cuda.attach.SelfAttachment;
import dev.vgpu.cuda.files.ContainerFiles;
import dev.vgpu.cuda.files.DeviceNodes;
import dev.vgpu.cuda.files.Preloads;
import dev.vgpu.cuda.hook.ContextMemory;
import dev.vgpu.cuda.hook.HookEnforcement;
import dev.vgpu.cuda.layout.HookEnvironment;
import dev.vgpu.cuda.layout.ShmLayout;
import dev.vgpu.cuda.pages.FutexWake;
import dev.vgpu.cuda.pages.Level2Notes;
import dev.vgpu.cuda.pages.PassedFiles;
import dev.vgpu.cuda.process.NanoClock;
import dev.vgpu.cuda.process.ProcFiles;
import dev.vgpu.cuda.process.ProgramCheck;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.spi.UnreadFiles;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * Virtual GPUs for unmodified CUDA programs. A library stands in for the driver in each program. A
 * program can deliberately bypass it: the hook is not a security boundary.
 */
public final class CudaHookBackend implements EnforcementBackend {
  private static final Path PROC = Path.of("/proc");
  private static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .compute(Capabilities.Compute.TURNS)
          .preemption(Capabilities.Preemption.BETWEEN_KERNELS)
          .worksFor(
              Capabilities.Scope.PROCESS,
              Capabilities.Scope.THIS_JVM,
              Capabilities.Scope.CONTAINER,
              Capabilities.Scope.OTHER_USERS)
          .build();

  private final Preloads preloads;
  private final Map<String, String> environment;
  private final ContextMemory contextMemory;

  /** Called by {@code ServiceLoader}. */
  public CudaHookBackend() {
    this(System.getenv());
  }

  CudaHookBackend(Map<String, String> environment) {
    this.environment = Map.copyOf(environment);
    this.preloads = Preloads.of(environment);
    this.contextMemory = new ContextMemory(environment);
  }

  @Override
  public String name() {
    return "cuda-hook";
  }

  @Override
  public BackendStatus status() {
    Optional<String> missing = preloads.hook().missing();
    return missing.isPresent()
        ? BackendStatus.ofUnavailable(name(), missing.get())
        : BackendStatus.ofAvailable(name(), CAPABILITIES).withNotes(Level2Notes.of(environment));
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    // The prefixes that NVIDIA's drivers give to whole GPUs and to MIG instances.
    String id = gpu.id().value();
    return id.startsWith("GPU-") || id.startsWith("MIG-");
  }

  @Override
  public boolean keepsToRunDirectory() {
    return true;
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return request.gpuCount() > ShmLayout.MEMORY_GPUS
        ? Optional.of(
            "the hook accounts for the memory of at most "
                + ShmLayout.MEMORY_GPUS
                + " GPUs of a lease: ask for fewer GPUs")
        : contextMemory.lack(gpu, request.memory());
  }

  @Override
  public Enforcement open(Path runDirectory) {
    return open(runDirectory, PROC);
  }

  /** Reads {@code proc} instead of {@code /proc}. */
  Enforcement open(Path runDirectory, Path proc) {
    FutexWake wake = new FutexWake();
    wake.prepare(); // meanwhile the rest opens, which needs JNA before others can connect
    return new HookEnforcement(
        runDirectory.toAbsolutePath(),
        preloads,
        contextMemory,
        !"off".equals(environment.get(HookEnvironment.VGPU_EXPRESS_LANE)),
        !"off".equals(environment.get(HookEnvironment.VGPU_LEVEL2)),
        NanoClock.SYSTEM,
        new ProcFiles(proc),
        wake,
        environment);
  }

  @Override
  public Optional<UnreadFiles> refuseFiles(Path socket) {
    return PassedFiles.refuse(socket);
  }

  @Override
  public ContainerSpec containerSpec(Map<String, String> environment) {
    return new ContainerFiles(environment, DeviceNodes.ofThisMachine()).spec();
  }

  @Override
  public void check(Path executable) {
    ProgramCheck.check(executable);
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    return SelfAttachment.attach(environment, PROC.resolve("self/maps"));
  }
}
