package dev.vgpu.spi;

import dev.vgpu.GpuSuspendException;
import dev.vgpu.watch.PhysicalGpu;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/**
 * Suspends processes: moves their memory from the GPUs to the host while their work waits, and
 * back. Implementations are found by {@code ServiceLoader}. Safe for use by several threads, but
 * only one thread at a time may handle a given process.
 */
public interface ProcessSuspender {
  /** {@return the name that people see, for example {@code checkpoint}} */
  String name();

  /**
   * Sets where it may keep files. Called once, before any other method.
   *
   * @param runDirectory the node's run directory
   */
  void begin(Path runDirectory);

  /**
   * {@return why it cannot suspend the processes on a GPU; empty if it can} Must not throw. The
   * first call may take some milliseconds.
   *
   * @param gpu one of the pool's GPUs
   */
  Optional<String> obstacle(PhysicalGpu gpu);

  /**
   * Moves the memory of processes off their GPUs, of all of them or of none. Work that they have
   * started ends or waits. Work that they start from now on waits. Processes that are already
   * suspended stay so. Blocks until it is done.
   *
   * @param gpu the GPU that they are on
   * @param pids the processes; any that have ended are skipped
   * @param timeout how long the suspension may take; undoing a failed one takes additional time
   * @throws GpuSuspendException if a process cannot be suspended, or not in time. All processes
   *     then run on as before, unless the message names one that does not
   */
  void suspend(PhysicalGpu gpu, List<Long> pids, Duration timeout);

  /**
   * Moves the memory of suspended processes back and lets them run on, all of them or none.
   * Processes that are not suspended are left as they are. Blocks until it is done.
   *
   * @param gpu the GPU that they are on
   * @param pids the processes; any that have ended are skipped
   * @param timeout how long the resumption may take
   * @throws GpuSuspendException if there is no room, or not in time; the processes stay suspended
   */
  void resume(PhysicalGpu gpu, List<Long> pids, Duration timeout);

  /**
   * Completes or undoes a suspension or resumption that was interrupted by the death of the process
   * performing it. Afterwards the given processes are either all suspended or all running.
   *
   * @param gpu the GPU that they are on
   * @param pids the processes
   * @param timeout how long it may take
   * @return whether they are suspended
   * @throws GpuSuspendException if some processes are neither suspended nor running; the message
   *     says which
   */
  boolean recover(PhysicalGpu gpu, List<Long> pids, Duration timeout);
}
