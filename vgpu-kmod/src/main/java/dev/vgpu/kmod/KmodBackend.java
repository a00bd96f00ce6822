package dev.vgpu.kmod;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.Enforcement;
import dev.vgpu.spi.EnforcementBackend;
import dev.vgpu.spi.ProcessAttachment;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Optional;

/**
 * Virtual GPUs whose memory quota the kernel module enforces, also for processes that no library
 * can be loaded into. A lease is a tenant of the module with its own cgroup, and takes no turns.
 */
public final class KmodBackend implements EnforcementBackend {
  static final String NAME = "kmod";

  /** The variable of {@link KmodLease#environment()} that holds the cgroup's directory. */
  static final String CGROUP = "VGPU_KMOD_CGROUP";

  /**
   * More than backends that also enforce shares, so this backend serves mainly requests that name
   * it.
   */
  private static final int COST = 500;

  private static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .worksFor(Capabilities.Scope.THIS_JVM, Capabilities.Scope.PROCESS)
          .build();

  private final Machine machine;

  /** Creates the backend; called by {@code ServiceLoader}. */
  public KmodBackend() {
    this(new Machine(Path.of("/")));
  }

  KmodBackend(Machine machine) {
    this.machine = machine;
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
  public BackendStatus status() {
    return machine
        .obstacle()
        .map(why -> BackendStatus.ofUnavailable(NAME, why).withNotes(machine.withoutTheModule()))
        .orElseGet(() -> BackendStatus.ofAvailable(NAME, CAPABILITIES));
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
  public Optional<String> obstacle(PhysicalGpu gpu) {
    return gpu.unusableAsWhole();
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    if (request.policy() == SharePolicy.FIXED_SHARE) {
      return Optional.of(
          "the module sets time slices, which enforce no fixed share: ask for BURST_SHARE");
    }
    return request.gpuCount() > 1
        ? Optional.of("the module counts a tenant's memory on all GPUs together: ask for one GPU")
        : Optional.empty();
  }

  @Override
  public Enforcement open(Path runDirectory) {
    Optional<String> obstacle = machine.obstacle();
    if (obstacle.isPresent()) {
      throw new VgpuException(obstacle.get());
    }
    try {
      return new KmodEnforcement(machine, machine.leaseCgroups(), runDirectory);
    } catch (IOException e) {
      throw new VgpuException("the cgroups of leases cannot be made: " + e.getMessage(), e);
    }
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    String cgroup = environment.get(CGROUP);
    if (cgroup == null) {
      throw new VgpuException("these are not the variables of a " + NAME + " lease: no " + CGROUP);
    }
    return KmodAttachment.attach(machine, Path.of(cgroup));
  }
}
