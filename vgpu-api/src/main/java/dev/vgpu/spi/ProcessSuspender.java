package dev.vgpu.spi;

import dev.vgpu.PhysicalGpu;
import dev.vgpu.VgpuException;
import java.time.Duration;

/**
 * Suspends processes: moves their memory off the GPUs to that of the host, while their work waits,
 * and back. A module that knows a driver which can implements it; {@code ServiceLoader} finds it.
 * Safe for use by several threads.
 */
public interface ProcessSuspender {
  /** {@return the name that people see, for example {@code emulator}} */
  String name();

  /**
   * {@return whether it can suspend the processes on a GPU} Must not throw.
   *
   * @param gpu one of the pool's
   */
  boolean serves(PhysicalGpu gpu);

  /**
   * Moves the memory of a process off its GPUs. What it had started ends or waits; what it starts
   * from now on waits. Blocks until it is done.
   *
   * @param pid the process
   * @param timeout how long it may take
   * @throws VgpuException if it cannot, or not in time; then the process goes on as before
   */
  void suspend(long pid, Duration timeout);

  /**
   * Moves the memory of a suspended process back, and lets it go on. Blocks until it is done. Does
   * nothing for a process that is not suspended.
   *
   * @param pid the process
   * @param timeout how long it may take
   * @throws VgpuException if there is no room, or not in time; it stays suspended then
   */
  void resume(long pid, Duration timeout);

  /**
   * {@return whether a process is suspended, by whomever} False for one that is not there.
   *
   * @param pid the process
   */
  boolean isSuspended(long pid);
}
