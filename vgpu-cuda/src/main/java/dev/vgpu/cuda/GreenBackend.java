package dev.vgpu.cuda;

import dev.vgpu.VgpuException;
import dev.vgpu.backend.BackendStatus;
import dev.vgpu.cuda.attach.GreenAttachment;
import dev.vgpu.cuda.attach.GreenEnforcement;
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
 * Virtual GPUs of one JVM, each with processors (SMs) of the GPU to itself while a thread is inside
 * it. Uses green contexts, which need CUDA 12.4 or later. They take no turns; the hook beneath
 * keeps the quotas.
 */
public final class GreenBackend implements EnforcementBackend {
  private static final String NAME = "green-contexts";

  /** High: a request that does not ask for this JVM gets a backend that serves programs. */
  private static final int COST = 400;

  private static final Capabilities CAPABILITIES =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .compute(Capabilities.Compute.SPATIAL)
          .worksFor(Capabilities.Scope.THIS_JVM)
          .build();
  private static final Capabilities NEEDS =
      Capabilities.builder()
          .memory(Capabilities.Memory.EXACT)
          .worksFor(Capabilities.Scope.THIS_JVM)
          .build();

  private final CudaHookBackend hook;

  /** Called by {@code ServiceLoader}. */
  public GreenBackend() {
    this(new CudaHookBackend());
  }

  GreenBackend(CudaHookBackend hook) {
    this.hook = hook;
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
    return hook.status()
        .unavailableBecause()
        .map(why -> BackendStatus.ofUnavailable(NAME, why))
        .orElseGet(() -> BackendStatus.ofAvailable(NAME, CAPABILITIES));
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public boolean serves(PhysicalGpu gpu) {
    return hook.serves(gpu);
  }

  @Override
  public Optional<String> obstacle(PhysicalGpu gpu) {
    return gpu.unusableAsWhole();
  }

  @Override
  public Optional<String> unable(PhysicalGpu gpu, VirtualGpuRequest request) {
    return request.policy() == SharePolicy.FIXED_SHARE
        ? Optional.empty()
        : Optional.of(
            "grants a fixed part of the GPU's processors: ask for FIXED_SHARE, or use turns");
  }

  @Override
  public Optional<Capabilities> needs() {
    return Optional.of(NEEDS);
  }

  @Override
  public Enforcement open(Path runDirectory) {
    throw new VgpuException("green contexts need a backend beneath them that keeps quotas exactly");
  }

  @Override
  public Enforcement open(Path runDirectory, Enforcement beneath) {
    try {
      return new GreenEnforcement(runDirectory.toAbsolutePath(), beneath);
    } catch (IOException e) {
      throw new VgpuException(
          "the directory for green contexts cannot be used: run=" + runDirectory, e);
    }
  }

  @Override
  public ProcessAttachment attachThisProcess(Map<String, String> environment) {
    return GreenAttachment.attach(hook.attachThisProcess(environment), environment);
  }
}
