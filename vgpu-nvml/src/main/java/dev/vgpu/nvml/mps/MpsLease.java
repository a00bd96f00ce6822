package dev.vgpu.nvml.mps;

import dev.vgpu.request.SharePolicy;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.ForwardingLease;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A lease whose programs are MPS clients and also hooked: the hook enforces the quota exactly, MPS
 * the share. Safe for use by several threads.
 */
final class MpsLease extends ForwardingLease {
  private final String id;
  private final MpsGpu on;
  private final EnforcedLease.Listener listener;
  private volatile VirtualGpuRequest request;

  MpsLease(
      String id,
      MpsGpu on,
      EnforcedLease beneath,
      VirtualGpuRequest request,
      EnforcedLease.Listener listener) {
    super(beneath);
    this.id = id;
    this.on = on;
    this.request = request;
    this.listener = listener;
  }

  String id() {
    return id;
  }

  /** {@return the lease beneath, for tests} */
  EnforcedLease under() {
    return beneath();
  }

  boolean hasShare() {
    return request.policy() != SharePolicy.BEST_EFFORT;
  }

  /** Reports that MPS failed beneath it. */
  void disturbed(String reason) {
    listener.disturbed(reason);
  }

  @Override
  public Map<String, String> environment() {
    Map<String, String> variables = new LinkedHashMap<>(super.environment());
    variables.putAll(on.clientEnvironment());
    variables.putAll(MpsTerms.environment(request));
    return Map.copyOf(variables);
  }

  /** Running programs keep the share that they started with; the quota changes at once. */
  @Override
  public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
    if (MpsTerms.unable(request).isPresent() || !super.tryResize(request, entitledPermille)) {
      return false;
    }
    this.request = request;
    return true;
  }

  @Override
  public void check(Path executable) {
    super.check(executable);
    on.checkRoomForAClient();
  }

  /** {@return its processes, by their pids on this host, which MPS uses too} */
  List<Long> pids() {
    return visibleProcesses();
  }

  @Override
  public void close() {
    try {
      super.close();
    } finally {
      on.remove(this);
    }
  }
}
