package dev.vgpu.spi;

import static java.util.Objects.requireNonNull;

import dev.vgpu.CallOptions;
import dev.vgpu.ContainerSpec;
import dev.vgpu.GpuTurn;
import dev.vgpu.MemoryReservation;
import dev.vgpu.PreemptibleCall;
import dev.vgpu.ReclaimHandler;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.Capabilities;
import dev.vgpu.request.MemorySize;
import dev.vgpu.request.VirtualGpuRequest;
import dev.vgpu.watch.GpuUsage;
import dev.vgpu.watch.PhysicalGpu;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A virtual GPU that forwards to another one, for code that adds something to its calls. Subclasses
 * override what differs. As safe for use by several threads as the virtual GPU beneath.
 */
public abstract class ForwardingVirtualGpu implements VirtualGpu {
  private final VirtualGpu beneath;

  /**
   * Creates a forwarding virtual GPU.
   *
   * @param beneath the virtual GPU to forward to
   */
  protected ForwardingVirtualGpu(VirtualGpu beneath) {
    this.beneath = requireNonNull(beneath, "beneath");
  }

  /** {@return the virtual GPU beneath} */
  protected final VirtualGpu beneath() {
    return beneath;
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call) throws Exception {
    return beneath.call(call);
  }

  @Override
  public <T extends @Nullable Object> T call(Callable<? extends T> call, CallOptions options)
      throws Exception {
    return beneath.call(call, options);
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call) throws Exception {
    return beneath.call(call);
  }

  @Override
  public <T extends @Nullable Object> T call(PreemptibleCall<? extends T> call, CallOptions options)
      throws Exception {
    return beneath.call(call, options);
  }

  @Override
  public void run(Runnable work) throws InterruptedException {
    beneath.run(work);
  }

  @Override
  public void run(Runnable work, CallOptions options) throws InterruptedException {
    beneath.run(work, options);
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(Callable<? extends T> call) {
    return beneath.submit(call);
  }

  @Override
  public <T extends @Nullable Object> CompletableFuture<T> submit(
      Callable<? extends T> call, CallOptions options) {
    return beneath.submit(call, options);
  }

  @Override
  public GpuTurn enter() throws InterruptedException {
    return beneath.enter();
  }

  @Override
  public GpuTurn enter(CallOptions options) throws InterruptedException {
    return beneath.enter(options);
  }

  @Override
  public String id() {
    return beneath.id();
  }

  @Override
  public PhysicalGpu gpu() {
    return beneath.gpu();
  }

  @Override
  public List<PhysicalGpu> gpus() {
    return beneath.gpus();
  }

  @Override
  public VirtualGpuRequest request() {
    return beneath.request();
  }

  @Override
  public Capabilities capabilities() {
    return beneath.capabilities();
  }

  @Override
  public Process start(ProcessBuilder program) throws IOException {
    return beneath.start(program);
  }

  @Override
  public Map<String, String> environment() {
    return beneath.environment();
  }

  @Override
  public ContainerSpec containerSpec() {
    return beneath.containerSpec();
  }

  @Override
  public void attachThisJvm() {
    beneath.attachThisJvm();
  }

  @Override
  public boolean hasHeadroom(MemorySize size) {
    return beneath.hasHeadroom(size);
  }

  @Override
  public Optional<MemoryReservation> tryReserve(MemorySize size) {
    return beneath.tryReserve(size);
  }

  @Override
  public void onReclaim(ReclaimHandler handler) {
    beneath.onReclaim(handler);
  }

  @Override
  public GpuUsage usage() {
    return beneath.usage();
  }

  @Override
  public void resize(VirtualGpuRequest request) {
    beneath.resize(request);
  }

  @Override
  public void suspend() {
    beneath.suspend();
  }

  @Override
  public void resume() {
    beneath.resume();
  }

  @Override
  public void suspend(Duration timeout) {
    beneath.suspend(timeout);
  }

  @Override
  public void resume(Duration timeout) {
    beneath.resume(timeout);
  }

  @Override
  public boolean isClosed() {
    return beneath.isClosed();
  }

  @Override
  public void close() {
    beneath.close();
  }

  @Override
  public String toString() {
    return beneath.toString();
  }
}
