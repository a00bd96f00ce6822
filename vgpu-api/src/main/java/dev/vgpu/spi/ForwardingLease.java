package dev.vgpu.spi;

import static java.util.Objects.requireNonNull;

import dev.vgpu.request.Capabilities;
import dev.vgpu.request.GpuId;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A lease that forwards to another one, for a backend that is built on another. Subclasses override
 * what differs. As safe for use by several threads as the lease beneath.
 */
public abstract class ForwardingLease implements EnforcedLease {
  private final EnforcedLease beneath;

  /**
   * Creates a forwarding lease.
   *
   * @param beneath the lease to forward to
   */
  protected ForwardingLease(EnforcedLease beneath) {
    this.beneath = requireNonNull(beneath, "beneath");
  }

  /** {@return the lease beneath} */
  protected final EnforcedLease beneath() {
    return beneath;
  }

  @Override
  public void gpus(List<GpuId> gpus) {
    beneath.gpus(gpus);
  }

  @Override
  public void open() {
    beneath.open();
  }

  @Override
  public boolean shut() {
    return beneath.shut();
  }

  @Override
  public int preempt() {
    return beneath.preempt();
  }

  @Override
  public boolean hasWork() {
    return beneath.hasWork();
  }

  @Override
  public long gpuTimeNs(long nowNs) {
    return beneath.gpuTimeNs(nowNs);
  }

  @Override
  public void contended(boolean contended) {
    beneath.contended(contended);
  }

  @Override
  public long leastTurnNs() {
    return beneath.leastTurnNs();
  }

  @Override
  public boolean yieldsByItself() {
    return beneath.yieldsByItself();
  }

  @Override
  public void yielding(boolean obey) {
    beneath.yielding(obey);
  }

  @Override
  public void finishing(boolean finish) {
    beneath.finishing(finish);
  }

  @Override
  public boolean mayOverlap() {
    return beneath.mayOverlap();
  }

  @Override
  public long busyUntilNs() {
    return beneath.busyUntilNs();
  }

  @Override
  public long copyTimeNs() {
    return beneath.copyTimeNs();
  }

  @Override
  public GpuWork work() {
    return beneath.work();
  }

  @Override
  public long othersNs() {
    return beneath.othersNs();
  }

  @Override
  public void othersNs(long ns) {
    beneath.othersNs(ns);
  }

  @Override
  public boolean tryResize(VirtualGpuRequest request, int entitledPermille) {
    return beneath.tryResize(request, entitledPermille);
  }

  @Override
  public Map<String, String> environment() {
    return beneath.environment();
  }

  @Override
  public List<String> launcher() {
    return beneath.launcher();
  }

  @Override
  public void check(Path executable) {
    beneath.check(executable);
  }

  @Override
  public MemorySize memoryUsed() {
    return beneath.memoryUsed();
  }

  @Override
  public MemorySize memoryUsed(int gpu, int gpus) {
    return beneath.memoryUsed(gpu, gpus);
  }

  @Override
  public List<Long> processes() {
    return beneath.processes();
  }

  @Override
  public boolean hasProcessesBesides(long pid) {
    return beneath.hasProcessesBesides(pid);
  }

  @Override
  public List<Long> visibleProcesses() {
    return beneath.visibleProcesses();
  }

  @Override
  public List<Long> memoryHolders() {
    return beneath.memoryHolders();
  }

  @Override
  public boolean mayAttachYet() {
    return beneath.mayAttachYet();
  }

  @Override
  public Optional<MemoryMover> mover() {
    return beneath.mover();
  }

  @Override
  public Optional<String> impaired() {
    return beneath.impaired();
  }

  @Override
  public int waiting() {
    return beneath.waiting();
  }

  @Override
  public long deniedAllocations() {
    return beneath.deniedAllocations();
  }

  @Override
  public long launches() {
    return beneath.launches();
  }

  @Override
  public Optional<Capabilities.Preemption> preemption() {
    return beneath.preemption();
  }

  @Override
  public Optional<String> preemptionReason() {
    return beneath.preemptionReason();
  }

  @Override
  public long passedThrough() {
    return beneath.passedThrough();
  }

  @Override
  public void close() {
    beneath.close();
  }
}
