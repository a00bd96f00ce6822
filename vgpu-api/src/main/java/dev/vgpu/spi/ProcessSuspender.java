package dev.vgpu.spi;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.PhysicalGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Suspends processes: moves their memory off the GPUs to that of the host, while their work waits,
 * and back. A module that knows a driver which can implements it; {@code ServiceLoader} finds it.
 * Safe for use by several threads, but one process's fate is in one thread's hands at a time.
 */
public interface ProcessSuspender {
  /** {@return the name that people see, for example {@code checkpoint}} */
  String name();

  /**
   * Says where it may keep files. Called once, before anything else is asked of it.
   *
   * @param runDirectory the node's
   */
  void begin(Path runDirectory);

  /**
   * {@return why it cannot suspend the processes on a GPU; empty if it can} Must not throw. May
   * take some milliseconds when it is asked first.
   *
   * @param gpu one of the pool's
   */
  Optional<String> obstacle(PhysicalGpu gpu);

  /**
   * Moves the memory of processes off their GPUs: of all of them, or of none. Work that they had
   * started ends or waits. Work that they start from now on waits. Suspended processes stay so.
   * Blocks until it is done.
   *
   * @param gpu the GPU that they are on
   * @param pids the processes; one that is gone is skipped
   * @param timeout how long it may take; undoing it, where it fails, comes on top
   * @throws GpuSuspendException if one cannot be, or not in time; then all go on as before, or the
   *     message says which does not
   */
  void suspend(PhysicalGpu gpu, List<Long> pids, Duration timeout);

  /**
   * Moves the memory of suspended processes back, and lets them go on: all of them, or none. Those
   * that are not suspended go on as they are. Blocks until it is done.
   *
   * @param gpu the GPU that they are on
   * @param pids the processes; one that is gone is skipped
   * @param timeout how long it may take
   * @throws GpuSuspendException if there is no room, or not in time; they stay suspended then
   */
  void resume(PhysicalGpu gpu, List<Long> pids, Duration timeout);

  /**
   * Completes or undoes a suspension or resumption of these processes that was left half done when
   * its process died: they are all suspended afterwards, or all run.
   *
   * @param gpu the GPU that they are on
   * @param pids the processes
   * @param timeout how long it may take
   * @return whether they are suspended
   * @throws GpuSuspendException if some are neither; the message says which
   */
  boolean recover(PhysicalGpu gpu, List<Long> pids, Duration timeout);
}
