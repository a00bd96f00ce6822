package dev.vgpu.nvml.mig;

import dev.vgpu.VgpuException;
import dev.vgpu.nvml.NvmlProvider;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.spi.EnforcedLease;
import dev.vgpu.spi.ForwardingLease;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** A lease that has a MIG instance, with another backend's lease inside it. */
final class MigLease extends ForwardingLease {
  private final MigEnforcement enforcement;
  private final int percent;
  private final EnforcedLease.Listener listener;
  private volatile MigRecord record;
  private volatile VirtualGpuRequest request;
  private volatile @Nullable String lostBecause;

  MigLease(
      MigEnforcement enforcement,
      MigRecord record,
      VirtualGpuRequest request,
      int percent,
      EnforcedLease beneath,
      EnforcedLease.Listener listener) {
    super(beneath);
    this.enforcement = enforcement;
    this.record = record;
    this.request = request;
    this.percent = percent;
    this.listener = listener;
  }

  MigRecord record() {
    return record;
  }

  void record(MigRecord changed) {
    record = changed;
  }

  VirtualGpuRequest request() {
    return request;
  }

  /** Switches to another instance of the same profile. Only while the lease has no processes. */
  void moved(MigRecord made, String what) {
    record = made;
    made.device().ifPresent(device -> super.gpus(List.of(device)));
    listener.disturbed(what);
  }

  /** Notes that the instance was destroyed; reported once. */
  void lost(String because) {
    if (lostBecause == null) {
      lostBecause = because;
      listener.disturbed(because);
    }
  }

  boolean isLost() {
    return lostBecause != null;
  }

  @Override
  public Optional<String> impaired() {
    return Optional.ofNullable(lostBecause).or(super::impaired);
  }

  @Override
  public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
    boolean isDone =
        request.computePercent().orElse(0) <= percent
            && enforcement.tryResize(
                this, request.memory().bytes(), () -> super.tryResize(request, entitledPermille));
    if (isDone) {
      this.request = request;
    }
    return isDone;
  }

  @Override
  public Map<String, String> environment() {
    String lost = lostBecause;
    if (lost != null) {
      throw new VgpuException(lost);
    }
    Map<String, String> variables = new LinkedHashMap<>(super.environment());
    record.device().ifPresent(id -> variables.put("CUDA_VISIBLE_DEVICES", id.value()));
    enforcement.place(record).ifPresent(at -> variables.put(NvmlProvider.MIG_VARIABLE, at));
    return Map.copyOf(variables);
  }

  /** Its processes see the instance, not the GPU that it is part of. */
  @Override
  public void gpus(List<GpuId> gpus) {
    super.gpus(record.device().map(List::of).orElse(gpus));
  }

  @Override
  public void close() {
    try {
      super.close();
    } finally {
      enforcement.ended(this);
    }
  }
}
