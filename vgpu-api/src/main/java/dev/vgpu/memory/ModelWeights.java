package dev.vgpu.memory;

import dev.vgpu.GpuCapacityException;
import dev.vgpu.MemoryReservation;
import dev.vgpu.VirtualGpu;
import dev.vgpu.request.MemorySize;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The part of a quota held by one model's weights, and by those of all models together. Safe for
 * use by several threads.
 */
public final class ModelWeights implements AutoCloseable {
  private static final Map<VirtualGpu, AtomicLong> HELD =
      Collections.synchronizedMap(new WeakHashMap<>());

  private final VirtualGpu gpu;
  private final String model;
  private final AtomicLong held;
  private final Queue<MemoryReservation> reservations = new ConcurrentLinkedQueue<>();

  /**
   * Creates weights that hold nothing yet.
   *
   * @param gpu the virtual GPU with the quota
   * @param model the model's name in messages
   */
  public ModelWeights(VirtualGpu gpu, String model) {
    this.gpu = gpu;
    this.model = model;
    this.held = HELD.computeIfAbsent(gpu, unused -> new AtomicLong());
  }

  /**
   * Reserves more of the quota.
   *
   * @param bytes how much; above 0
   * @throws GpuCapacityException if that much is not left
   */
  public void reserve(long bytes) {
    MemorySize size = MemorySize.ofBytes(bytes);
    reservations.add(gpu.tryReserve(size).orElseThrow(() -> refusal(size)));
    held.addAndGet(bytes);
  }

  private GpuCapacityException refusal(MemorySize size) {
    return new GpuCapacityException(
        "a model does not fit what is left of its quota: model="
            + model
            + " needed="
            + size
            + " reserved="
            + gpu.usage().memoryReserved()
            + " quota="
            + gpu.request().memory()
            + " virtualGpu="
            + gpu.id(),
        List.of());
  }

  /** {@return the bytes of the quota that no model's weights hold; at least 1} */
  public long leftForCalls() {
    return Math.max(1, gpu.request().memory().bytes() - held.get());
  }

  @Override
  public void close() {
    MemoryReservation reservation = reservations.poll();
    while (reservation != null) {
      held.addAndGet(-reservation.size().bytes());
      reservation.close();
      reservation = reservations.poll();
    }
  }
}
